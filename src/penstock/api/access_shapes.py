"""Shapes of keys and users in the OpenAPI document."""

from collections.abc import Mapping
from typing import Final

from penstock.api.schemas import BOOLEAN, STRING, TEXT, TIME, Schema, listed, made, nullable, ref

_API_KEY: Final[Mapping[str, Schema]] = {
    "id": STRING,
    "name": STRING,
    "scopes": listed(STRING),
    "role": nullable(STRING),
    "tenant": nullable(STRING),
    "valid": BOOLEAN,
    "created_at": TIME,
    "created_by": STRING,
    "expires_at": nullable(TIME),
    "revoked_at": nullable(TIME),
    "used_at": nullable(TIME),
}
ACCESS_SHAPES: Final[Mapping[str, Schema]] = {
    "ApiKeys": made({"keys": listed(ref("ApiKey"))}),
    "ApiKey": made(_API_KEY),
    "NewApiKeyMade": made({**_API_KEY, "key": STRING}),
    "NewApiKey": made(
        {"name": TEXT},
        {
            "scopes": listed(STRING),
            "role": nullable(STRING),
            "tenant": nullable(TEXT),
            "expires": nullable(STRING),
        },
        open_=False,
    ),
    "Users": made({"users": listed(ref("User"))}),
    "User": made(
        {
            "name": STRING,
            "scopes": listed(STRING),
            "role": nullable(STRING),
            "tenant": nullable(STRING),
            "created_at": TIME,
            "seen_at": nullable(TIME),
        }
    ),
    "NewUser": made(
        {},
        {
            "password": nullable(STRING),
            "scopes": listed(STRING),
            "role": nullable(STRING),
            "tenant": nullable(TEXT),
        },
        open_=False,
    ),
}
