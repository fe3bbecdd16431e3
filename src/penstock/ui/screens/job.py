"""`/jobs/ID`: why it is where it is, all that happened to it, what it carries, and what can be done."""

import json
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from hashlib import sha256
from typing import Any, Final

from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.response import Redirect

from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.edits import Version
from penstock.domain.job import Job
from penstock.domain.masking import without_words
from penstock.domain.payloads import Json
from penstock.domain.states import Effect, Verb, answer
from penstock.domain.traces import traceparent_of
from penstock.domain.ulid import BadUlid
from penstock.domain.ulid import parse as parse_ulid
from penstock.errors import InvalidJob, InvalidQuery, NotFound, PenstockError
from penstock.explain import explain_standing
from penstock.ui.answers import tries
from penstock.ui.audits import differences
from penstock.ui.folding import folded
from penstock.ui.site import REFUSED, AnyRequest, Site, acted, form, kept, may, reason_of
from penstock.ui.telling import Told, back, undo
from penstock.ui.times import until_of
from penstock.ui.words import pretty
from penstock.wire import encode, job_object, timeline_object

MOST_SHOWN: Final = 50_000  # characters of a payload, on a page that is fetched anew every few seconds
EDITED: Final = ("payload", "target", "run_at", "reason")
TOLD: Final = frozenset({"at", "event", "error", "reason", "actor", "before", "after"})
BAD: Final = frozenset({"dead", "failed", "tryagain", "retry", "expired", "lapse", "permanent", "exhausted"})
SAID: Final = {
    "permanent": "failed for good", "exhausted": "failed, the last attempt",
    "settle_succeeded": "marked as succeeded", "settle_dead": "marked as dead",
}  # fmt: skip
WORDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "retry": ("Retry", "It goes at once; a job that ended goes again, with its attempts counted anew.", "go"),
    "skip": ("Skip", "It is passed over and its group goes on. It is never sent.", ""),
    "hold": ("Hold", "It is parked until somebody releases it.", ""),
    "release": ("Release", "It goes when it is due and first in its group.", "go"),
    "cancel": ("Cancel", "It ends here. One that is out is asked to stop, and may still succeed.", "danger"),
    "settle_succeeded": ("Mark as succeeded", "Say that it was done, though nobody reported it.", ""),
    "settle_dead": ("Mark as dead", "Say that it failed for good.", "danger"),
}  # fmt: skip
SECRET: Final = ("auth", "cookie", "token", "secret", "key", "signature", "password")


def routes(site: Site) -> list[HTTPRouteHandler]:
    """Return the handlers."""

    @get("/jobs/{job_id:str}", opt=needs(Scope.READ))
    async def one_job(request: AnyRequest) -> Response[bytes]:
        job_id, payload = request.path_params["job_id"], may(request, Scope.PAYLOAD)
        return await site.page(
            request, "job.html", lambda: _view(site.seen_by(request), job_id, payload=payload)
        )

    @get("/jobs/{job_id:str}/payload", opt=needs(Scope.PAYLOAD))
    async def whole_payload(request: AnyRequest) -> Response[bytes]:
        job = await site.desk.ask(site.acting(request).get, request.path_params["job_id"])
        if job.context is None or job.context.payload is None:
            raise NotFound("payload of job", job.id)
        return Response(
            job.context.payload.encode(errors="replace"),
            media_type="text/plain",  # nothing that a browser would run or draw
            headers={"Cache-Control": "no-store"},
        )

    @get("/jobs/{job_id:str}/edit", opt=needs(Scope.PAYLOAD))
    async def edit_page(request: AnyRequest) -> Response[bytes]:
        job_id = request.path_params["job_id"]
        return await site.page(request, "job_edit.html", lambda: _edit_view(site.seen_by(request), job_id))

    @post("/jobs/{job_id:str}/edit", opt=needs(Scope.OPERATE))
    async def edit(request: AnyRequest) -> Response[bytes] | Redirect:
        job_id, fields, seen = request.path_params["job_id"], await form(request), site.seen_by(request)
        try:
            said = await site.desk.ask(_edit, seen.client, job_id, fields)
        except (InvalidJob, InvalidQuery) as error:
            if not may(request, Scope.PAYLOAD):
                return back(f"/jobs/{job_id}", str(error), bad=True)
            refused = kept(dict.fromkeys(EDITED, "") | fields, error)
            return await site.page(
                request, "job_edit.html", lambda: _edit_view(seen, job_id) | refused, status=REFUSED
            )
        except PenstockError as error:
            return back(f"/jobs/{job_id}", str(error), bad=True)
        site.forget()
        return back(f"/jobs/{job_id}", said)

    @post("/jobs/{job_id:str}/{verb:str}", opt=needs(Scope.OPERATE))
    async def act_on_job(request: AnyRequest) -> Response[Any]:
        job_id, verb = request.path_params["job_id"], request.path_params["verb"]
        fields, client = await form(request), site.acting(request)
        to = fields.get("next") or f"/jobs/{job_id}"
        return await acted(site, request, to, lambda: operated(client, job_id, verb, fields))

    return [one_job, whole_payload, edit_page, edit, act_on_job]


def operated(client: Client, job_id: str, verb: str, fields: Mapping[str, str]) -> str | Told:
    """Carry out a verb and say what it did."""
    reason = reason_of(fields)
    if verb not in set(Verb):
        raise InvalidJob("action", f"{verb!r} is nothing that can be done to a job")
    done = client.operate(Verb(verb), job_id, reason=reason, force=fields.get("force") == "on")
    words = verb.replace("_", " ")
    if done.effect is Effect.REFUSED:
        raise InvalidJob(words, done.text or "it is not in a state in which that can be done")
    state = "gone" if done.state is None else done.state.label
    if done.effect is Effect.REQUESTED:
        return f"Asked whoever has the job to {words} it."
    way = undo("jobs", job_id, "release") if verb == Verb.HOLD else None
    return Told(f"Done: the job is {state}.", way)


def _view(site: Site, job_id: str, *, payload: bool) -> dict[str, Any]:
    now = site.figures.now()["at"] or site.store.now()
    with site.store.frozen() as still:
        standing = still.standing(_known(job_id))
        if standing is None:
            raise NotFound("job", job_id)
        job = standing.job
        timeline = still.timeline(job.id)
        versions = still.payload_versions(job.id) if payload and job.live.revision else []
    sent = job.context.payload if payload and job.context else None
    shown = pretty(sent)
    cut = len(shown) > MOST_SHOWN
    return {
        "screen": "jobs",
        "job": job,
        "facts": job_object(job, payload=payload),
        "why": explain_standing(site.look, standing, lambda of: site.kept.who_stopped(site.store, of)),
        "events": _events(timeline_object(job, timeline)["events"], hidden=not payload),
        "tries": tries(job, timeline.attempts, hidden=not payload),
        "said": SAID,
        "verbs": _verbs(job),
        "editable": answer(Verb.EDIT, job.state).effect is Effect.NOW and job.context is not None,
        "versions": _diffs(versions),
        "headers": _headers(job.context.headers if job.context else None),
        "trace": _trace(job),
        "payload": shown[:MOST_SHOWN],
        "cut": cut,
        "most": MOST_SHOWN,
        "folded": None if cut else folded(sent),
        "result": folded(job.result) if payload else None,
        "hash": _hash(job.context.payload if job.context else None),
        "neighbours": standing.around,
        "raw": pretty(encode(job_object(job, payload=payload and not cut))),
        "now": now,
    }


def _known(job_id: str) -> str:
    try:
        return parse_ulid(job_id)
    except BadUlid:
        raise NotFound("job", job_id) from None


def _verbs(job: Job) -> list[tuple[str, str, str, str, bool]]:
    """Return what can be done now: verb, words, explanation, tone, and whether it only asks."""
    effects = {verb: answer(Verb(verb), job.state).effect for verb in WORDS}
    possible = [verb for verb, effect in effects.items() if effect is not Effect.REFUSED]
    found = []
    for verb in possible:
        label, text, tone = WORDS[verb]
        if verb == Verb.RETRY and Verb.RELEASE in possible:  # one button stands out
            tone = ""
        found.append((verb, label, text, tone, effects[verb] is Effect.REQUESTED))
    return found


def _events(events: Sequence[Mapping[str, Any]], *, hidden: bool) -> list[dict[str, Any]]:
    """Return the timeline with the time between one thing and the next."""
    shown: list[dict[str, Any]] = []
    before = said = None
    for event in events:
        at = event["at"]
        more = {k: v for k, v in event.items() if k not in TOLD}
        word, actor = str(event["event"]), event.get("actor")
        error = without_words(event.get("error")) if hidden else event.get("error")
        if word == "dead" and error == said:  # the attempt that it died of has told it
            error = None
        said = error
        tone = "bad" if word in BAD and not actor else "good" if word == "succeeded" else ""
        tone = tone or ("wait" if actor else "")
        shown.append(
            {
                "at": at,
                "word": SAID.get(word, word),
                "tone": tone,
                "since": None if before is None else (at - before).total_seconds(),
                "error": error,
                "reason": event.get("reason"),
                "actor": actor,
                "changes": differences(event.get("before"), event.get("after")),
                "more": more,
            }
        )
        before = at
    return shown


def _diffs(versions: Sequence[Version]) -> list[dict[str, Any]]:
    """Return each version of what was to be sent, with what changed since the one before; newest first."""
    found: list[dict[str, Any]] = []
    for old, new in zip([None, *versions], versions, strict=False):
        before = "" if old is None else pretty(old.payload)
        after = pretty(new.payload)
        lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
        found.append({"version": new, "lines": [] if old is None else lines})
    return found[::-1]


def _headers(text: str | None) -> list[tuple[str, str]]:
    """Return headers as they may be shown: what looks like a secret is not."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return []
    if not isinstance(found, dict):
        return []
    return [
        (name, "•••" if any(word in name.lower() for word in SECRET) else str(value))
        for name, value in found.items()
    ]


def _trace(job: Job) -> str | None:
    """Return the id of the trace that the job belongs to; None = it carries none that is told."""
    found = traceparent_of(job.context.headers) if job.context else None
    return None if found is None else found.split("-")[1]


def _hash(payload: str | None) -> str | None:
    return None if payload is None else sha256(payload.encode(errors="replace")).hexdigest()[:16]


def _edit_view(site: Site, job_id: str) -> dict[str, Any]:
    job = site.client.get(job_id)
    if job.context is None:
        raise NotFound("payload of job", job_id)
    move = answer(Verb.EDIT, job.state)
    return {"screen": "jobs", "job": job, "said": job.context, "possible": move.effect is Effect.NOW,
            "replays": move.move is not None, "now": site.store.now(), "fields": None,
            "problem": None}  # fmt: skip


def _edit(client: Client, job_id: str, fields: Mapping[str, str]) -> str:
    job = client.get(job_id)
    said = job.context
    if said is None:
        raise NotFound("payload of job", job_id)
    reason = reason_of(fields)
    changed: dict[str, Any] = {}
    text = fields.get("payload", "")
    if fields.get("revision", str(job.live.revision)) != str(job.live.revision):
        if text in (said.payload, pretty(said.payload).strip()):  # the same form, sent twice
            return "Edited already: nothing more was changed."
        raise InvalidJob("edit", "the job was changed since the form was shown: look what it is now")
    if text != pretty(said.payload).replace("\r\n", "\n").strip():
        changed["payload"] = Json(text) if text else None
    if fields.get("target", "") != (said.target or ""):
        changed["target"] = fields["target"] or None
    at = until_of(fields.get("run_at", ""), client.store.now())
    replay = answer(Verb.EDIT, job.state).move is not None
    done = client.edit(job.id, reason=reason, run_at=at, replay=replay, **changed)
    if done.effect is not Effect.NOW:
        raise InvalidJob("edit", done.text or "it cannot be edited now")
    return "Edited; it goes again." if replay else "Edited."
