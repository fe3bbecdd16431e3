"""What executors say of a send: `POST /api/jobs/{id}/outcome`, and many at once to `/api/outcomes`."""

from collections.abc import Sequence
from random import Random
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler

from penstock.api.bodies import bad_json, batch_of, fitted, json_object, json_text
from penstock.api.desk import Desk, json_answer
from penstock.api.problems import Problem
from penstock.api.scopes import needs
from penstock.client import Client
from penstock.domain.access import Scope
from penstock.domain.job import Job
from penstock.domain.reports import Word, delay, meaning
from penstock.domain.ulid import BadUlid
from penstock.domain.ulid import parse as parse_ulid
from penstock.errors import InvalidJob, NotFound, PenstockError
from penstock.ports.store import Report, Reported
from penstock.wire import encode

MAX_SEND: Final = 2**31 - 1


class Said(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A report as it is sent; in a batch each names its job. `after` is a duration, or seconds."""

    send: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEND)]
    outcome: str
    id: str = ""
    retryable: bool = True
    error: str | None = None
    result: Any = None
    after: str | float | None = None


def outcome_routes(desk: Desk, rng: Random) -> list[HTTPRouteHandler]:
    """Return the handlers of reports; `rng` spreads retries."""

    @post("/api/jobs/{job_id:str}/outcome", opt=needs(Scope.REPORT, tenants=True))
    async def report(request: Request[Any, Any, Any]) -> Response[bytes]:
        job_id, text = request.path_params["job_id"], await json_text(request)
        return json_answer(await desk.ask(_one, desk.acting(request), job_id, text, rng=rng))

    @post("/api/outcomes", opt=needs(Scope.REPORT, tenants=True))
    async def report_many(request: Request[Any, Any, Any]) -> Response[bytes]:
        text = await json_text(request)
        return json_answer(await desk.ask(_many, desk.acting(request), text, rng=rng))

    return [report, report_many]


def _one(client: Client, job_id: str, text: str, *, rng: Random) -> str:
    said = _read(text)
    if said.id not in ("", job_id):
        raise InvalidJob("id", "differs from the address: leave it out")
    said.id = job_id
    [answer] = report_all(client, [said], rng=rng)
    if isinstance(answer, PenstockError):
        raise answer
    return encode(_shown(answer))


def _many(client: Client, text: str, *, rng: Random) -> str:
    elements = batch_of(text, "outcomes")
    if elements is None:
        raise bad_json('write {"outcomes": [{"id": ..., "send": ..., "outcome": ...}]}')
    read = [_read_or_refuse(element) for element in elements]
    answers = iter(report_all(client, [one for one in read if isinstance(one, Said)], rng=rng))
    results = [_told(one, next(answers)) if isinstance(one, Said) else {"error": str(one)} for one in read]
    return encode({"results": [{"index": index} | result for index, result in enumerate(results)]})


def report_all(client: Client, reports: Sequence[Said], *, rng: Random) -> list[Reported | PenstockError]:
    """Apply reports, all with two calls of the store; one answer each, in order."""
    ids = [_known(said.id) for said in reports]
    jobs = client.store.find([id_ for id_ in ids if id_])
    meant = [
        _meant(client, said, jobs.get(id_ or ""), rng=rng) for said, id_ in zip(reports, ids, strict=True)
    ]
    written = iter(client.store.report([one for one in meant if isinstance(one, Report)]))
    return [next(written) if isinstance(one, Report) else one for one in meant]


def _meant(client: Client, said: Said, job: Job | None, *, rng: Random) -> Report | PenstockError:
    """Return the report as the store takes it, or what is wrong with it."""
    if job is None:
        return NotFound("job", said.id)
    try:
        word = Word(
            outcome=said.outcome,
            error=said.error,
            retryable=said.retryable,
            result=said.result,
            after=delay(said.after),
        )
        means = meaning(word, job=job.live, lane=client.lane(job.lane), random=rng.random())
    except InvalidJob as error:
        return error
    return Report(id=job.id, send=said.send, outcome=means)


def _read(text: str) -> Said:
    try:
        return fitted(json_object(text), Said)
    except msgspec.ValidationError as error:
        # "Expected `int`, got `str` - at `$.send`"
        words, _, place = str(error).partition(" - at `$.")
        raise InvalidJob(place.rstrip("`") or "outcome", words) from None


def _read_or_refuse(text: str) -> Said | Exception:
    try:
        return _read(text)
    except (Problem, InvalidJob) as error:
        return error


def _known(id: str) -> str | None:  # noqa: A002
    try:
        return parse_ulid(id)
    except BadUlid:
        return None


def _told(said: Said, answer: Reported | PenstockError) -> dict[str, Any]:
    shown = {"error": str(answer)} if isinstance(answer, PenstockError) else _shown(answer)
    return {"id": said.id} | shown


def _shown(reported: Reported) -> dict[str, Any]:
    return {
        "applied": reported.applied,
        "late": reported.late,
        "cancel_requested": reported.cancel_requested,
    }
