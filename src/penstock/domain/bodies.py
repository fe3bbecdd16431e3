"""What a message is written on: the four formats, as functions of an envelope.

`payload` is the payload's bytes as stored, `full` carries everything, `pointer` says where to ask for it,
`app` is the flat form some consumers know. A payload is put in as the exact text it was given as: no number,
escape or blank in it is rewritten.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.domain.envelopes import Envelope, Unwritable
from penstock.domain.headers import EVENT_PREFIX, message_headers
from penstock.domain.texts import stamp

DEFAULT_POOL: Final = "DISPATCH-POOL"
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_NOTHING: Final = "null"


def unsigned(_: Envelope) -> str:
    """Return no token at all."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes bodies for one sink.

    `format` is for envelopes that do not say; `kind` names the sink in the `app` form. Pointers lead to
    `endpoint` and carry what `sign` returns.
    """

    format: str
    kind: str
    endpoint: str = ""
    default_pool: str = DEFAULT_POOL
    prefix: str = EVENT_PREFIX
    sign: Callable[[Envelope], str] = unsigned

    def body(self, envelope: Envelope) -> bytes:
        """Return the bytes to send, or raise Unwritable."""
        match envelope.format or self.format:
            case "payload":
                text = envelope.payload if envelope.payload is not None else _NOTHING
            case "full":
                text = self._full(envelope)
            case "pointer":
                text = self._pointer(envelope)
            case "app":
                text = self._app(envelope)
            case other:
                raise Unwritable(f"format: {other!r} is none of payload, full, pointer, app")
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise Unwritable("payload: holds a lone surrogate, which is no character: edit the job") from None

    def _full(self, envelope: Envelope) -> str:
        return _object(
            {
                "id": envelope.id,
                "send": envelope.number,
                "lane": envelope.lane,
                "poolCode": envelope.pool or self.default_pool,
                "mediationType": "HTTP",
                "target": envelope.target,
                "payload": envelope.payload,
                "headers": message_headers(envelope, prefix=self.prefix),
                "messageGroupId": envelope.ordered_group,
                "deduplicationId": envelope.dedup,
            },
            verbatim="payload",
        )

    def _pointer(self, envelope: Envelope) -> str:
        return _object(
            {
                "id": envelope.id,
                "poolCode": envelope.pool or self.default_pool,
                "authToken": self.sign(envelope),
                "mediationType": "HTTP",
                "mediationTarget": self.endpoint,
                "messageGroupId": envelope.ordered_group,
                "send": envelope.number,
            }
        )

    def _app(self, envelope: Envelope) -> str:
        entity = envelope.entity
        return _object(
            {
                "jobId": envelope.id,
                "appName": envelope.lane,
                "entityId": None if entity is None else entity.partition("/")[2] or entity,
                "executionTime": stamp(envelope.run_at),
                "queueType": self.kind.upper(),
                "topicName": envelope.queue or envelope.lane,
                "jobParams": envelope.payload,
            },
            verbatim="jobParams",
        )


def _object(members: Mapping[str, object], *, verbatim: str | None = None) -> str:
    """Return the members as one JSON object; the one named is JSON text already and goes in as it is."""
    return "{" + ",".join(f'"{k}":{_value(v, k == verbatim)}' for k, v in members.items()) + "}"


def _value(value: object, verbatim: bool) -> str:  # noqa: FBT001 - read at its only call
    return value if verbatim and isinstance(value, str) else _JSON.encode(value)
