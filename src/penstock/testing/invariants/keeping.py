"""Keys and retention: who owns a key, and what may be dropped when."""

from collections.abc import Sequence
from datetime import timedelta

from penstock.domain.job import Enqueued, NewJob
from penstock.domain.states import JobState
from penstock.errors import KeyConflict, PenstockError
from penstock.testing.invariants.facts import TerminalChanged, WrongKey
from penstock.testing.invariants.model import Fact
from penstock.testing.invariants.picture import Changes, Picture, Verdict


def retire(picture: Picture, **_: object) -> Verdict:
    """Nothing is dropped, and no key given up, before its time."""
    rules = {lane.number: lane for lane in picture.lanes.values()}
    owners = {fact.id for fact in _owners(picture).values()}

    def verdict(_: int, changes: Changes) -> None:
        if freed := owners & picture.model.freed:
            raise WrongKey("keys are given up before their time", freed=freed)
        for change in changes.values():
            spot = change.before
            if spot is None or spot.finished_at is None:
                continue
            dead = spot.state is JobState.DEAD
            kept = rules[spot.job.lane].dead_retention if dead else timedelta(days=spot.job.keep)
            if spot.finished_at + kept > picture.now:
                raise TerminalChanged("dropped before its retention is over", spot=spot, now=picture.now)

    return verdict


def enqueue(picture: Picture, jobs: Sequence[NewJob]) -> Verdict:
    """A key makes one job, and is answered with it as long as it is owned."""
    owners = _owners(picture)
    taken = set(picture.model.arrivals)

    def verdict(answers: Sequence[Enqueued | PenstockError], changes: Changes) -> None:
        del changes
        for job, answer in zip(jobs, answers, strict=True):
            lane = picture.lanes[job.lane].number
            owner = owners.get((lane, job.key or ""))
            if isinstance(answer, Enqueued) and not answer.duplicate and owner is None:
                fact = picture.model.facts[picture.model.arrivals[answer.id]]
                if job.key is not None:
                    owners[lane, job.key] = fact
            elif owner is None and job.id in taken:
                continue  # an id is taken for ever, a key for a while
            elif owner is None or not _right_answer(job, answer, owner.id, owner.payload):
                raise WrongKey(f"key {job.key}: {answer}", job=job, owner=owner)

    return verdict


def _right_answer(job: NewJob, answer: Enqueued | PenstockError, owner: str, payload: str | None) -> bool:
    if isinstance(answer, Enqueued):
        return answer == (owner, True) and payload == job.payload
    if isinstance(answer, KeyConflict):
        return answer.job_id == owner and payload != job.payload
    return False


def _owners(picture: Picture) -> dict[tuple[int, str], Fact]:
    facts = picture.model.facts
    keyed = {arrival: fact for arrival, fact in facts.items() if fact.key is not None}
    owned = (fact for arrival, fact in keyed.items() if _owns(picture, arrival, fact.lane))
    return {(fact.lane, fact.key or ""): fact for fact in owned}


def _owns(picture: Picture, arrival: int, lane: int) -> bool:
    spot = picture.model.spots.get(arrival)
    if spot is None or picture.model.facts[arrival].id in picture.model.freed:
        return False  # a key that was free once stays free, even if the clock is set back
    if spot.finished_at is None or spot.state is JobState.DEAD:
        return True
    ttl = next(rules.key_ttl for rules in picture.lanes.values() if rules.number == lane)
    return picture.now < spot.finished_at + ttl
