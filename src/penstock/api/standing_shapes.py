"""Shapes of groups, targets, nodes and pauses in the OpenAPI document."""

from collections.abc import Mapping
from typing import Final

from penstock.api.schemas import (
    BOOLEAN,
    INTEGER,
    NEXT,
    NUMBER,
    REASON,
    STRING,
    TEXT,
    TIME,
    Schema,
    listed,
    made,
    named,
    nullable,
)

_GROUP: Final = made(
    {
        "lane": STRING,
        "group": STRING,
        "state": STRING,
        "head": nullable(STRING),
        "blocker": nullable(STRING),
        "since": nullable(TIME),
        "behind": INTEGER,
        "next_at": nullable(TIME),
        "until": nullable(TIME),
    }
)
_PAUSE: Final = nullable(made({"by": STRING, "reason": STRING, "since": TIME, "until": nullable(TIME)}))
_TARGET: Final = made(
    {
        "name": STRING,
        "state": named("closed", "open", "trial"),
        "failures": INTEGER,
        "opened_at": nullable(TIME),
        "until": nullable(TIME),
        "slow_until": nullable(TIME),
        "pause": _PAUSE,
    }
)
_NODE: Final = made(
    {
        "id": INTEGER,
        "name": STRING,
        "version": STRING,
        "started_at": TIME,
        "seen_at": TIME,
        "alive": BOOLEAN,
        "leads": BOOLEAN,
        "silent_s": NUMBER,
        "drain": _PAUSE,
        "claims_left": nullable(INTEGER),
    }
)
_NAMED_GROUP: Final = {**REASON, "lane": TEXT, "group": TEXT}
_NAMED_TARGET: Final = {**REASON, "target": TEXT}
_UNTIL: Final = {"until": nullable(TIME)}
STANDING_SHAPES: Final[Mapping[str, Schema]] = {
    "StorePause": made({"pause": _PAUSE}),
    "Groups": made({"groups": listed(_GROUP), "next": NEXT}),
    "GroupCommand": made(_NAMED_GROUP, open_=False),
    "GroupPause": made(_NAMED_GROUP, _UNTIL, open_=False),
    "GroupPaused": made({"lane": STRING, "group": STRING, "paused": BOOLEAN, **_UNTIL}),
    "Targets": made({"targets": listed(_TARGET)}),
    "TargetCommand": made(_NAMED_TARGET, open_=False),
    "TargetPause": made(_NAMED_TARGET, _UNTIL, open_=False),
    "TargetReset": made({"target": STRING, "reset": BOOLEAN}),
    "TargetPaused": made({"target": STRING, "pause": _PAUSE}),
    "NodeDrain": made({"node": INTEGER, "drain": _PAUSE}),
    "Nodes": made({"nodes": listed(_NODE), "leader": nullable(INTEGER)}),
}
