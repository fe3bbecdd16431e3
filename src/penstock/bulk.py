"""Bulk operations as clients ask for them: checked, counted first, begun on demand."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from penstock.domain.arguments import check_key
from penstock.domain.filters import MAX_PAGE
from penstock.domain.intake import new_job
from penstock.domain.operations import MOST_RATE, STATES, NewOperation, query_of
from penstock.domain.payloads import dumped
from penstock.domain.sense import target_problem
from penstock.domain.states import VERBS, Verb
from penstock.errors import InvalidJob, InvalidQuery
from penstock.ports.store import Store

COUNTED: Final = 10_000
SHOWN: Final = 10
MAX_PATCH_BYTES: Final = 64 * 1024
CHANGES: Final = ("payload", "headers", "target", "merge")


class Preview(NamedTuple):
    """What an operation would be about: how many jobs, in which lanes and states, and the first few ids.

    `capped`: there are more than were looked for.
    """

    verb: Verb
    filter: str
    matched: int
    capped: bool
    lanes: Mapping[str, int]
    states: Mapping[str, int]
    ids: list[str]


def verb_of(name: str) -> Verb:
    """Return the verb of this name, or raise InvalidQuery; `replay` is another name for `retry`."""
    wanted = "retry" if name == "replay" else name
    if wanted not in {str(verb) for verb in STATES}:
        raise InvalidQuery("verb", f"{name!r} is none of {', '.join(STATES)}")
    return Verb(wanted)


def preview(store: Store, verb: Verb, line: str) -> Preview:
    """Count what a filter finds, up to a cap: ten thousand jobs, or as many looks as that takes.

    Jobs in states in which the verb does nothing are not counted, though the filter may name them.
    """
    query = query_of(verb, line, now=store.now())
    query = replace(query, states=query.states & VERBS[verb].keys())
    if not query.states:  # which would mean any
        return Preview(verb, line, 0, False, {}, {}, [])
    lanes, states, ids = dict[str, int](), dict[str, int](), list[str]()
    count, after = 0, None
    for _ in range(COUNTED // MAX_PAGE):
        page = store.list_jobs(replace(query, after=after))
        for job in page.jobs:
            lanes[job.lane] = lanes.get(job.lane, 0) + 1
            states[job.state.label] = states.get(job.state.label, 0) + 1
        ids += [job.id for job in page.jobs[: SHOWN - len(ids)]]
        count, after = count + len(page.jobs), page.next
        if after is None:
            break
    return Preview(verb, line, count, after is not None, lanes, states, ids)


def new_operation(
    verb: Verb,
    line: str,
    *,
    actor: str,
    reason: str,
    rate: int | None = None,
    force: bool = False,
    key: str | None = None,
    change: Mapping[str, Any] | None = None,
) -> NewOperation:
    """Return an operation that may begin, or raise what is wrong with it."""
    if rate is not None and not 1 <= rate <= MOST_RATE:
        raise InvalidQuery("rate", f"from 1 to {MOST_RATE} jobs a second, or none")
    if (verb is Verb.EDIT) != bool(change):
        what = (
            f"an edit says what changes: {', '.join(CHANGES)}" if not change else "only an edit changes jobs"
        )
        raise InvalidQuery("change", what)
    if key is not None:
        check_key(key)
    text = None if not change else _change(change)
    return NewOperation(
        verb=verb, filter=line, actor=actor, reason=reason, rate=rate, force=force, key=key, change=text
    )


def _change(change: Mapping[str, Any]) -> str:
    """Return what changes as the store keeps it: each member as the text that a job would have."""
    unknown = sorted(change.keys() - set(CHANGES))
    if unknown:
        raise InvalidQuery("change", f"{unknown[0]!r} is none of {', '.join(CHANGES)}")
    if "merge" in change and "payload" in change:
        raise InvalidQuery("change", "give a whole payload, or what to merge into each, not both")
    content = {name: change[name] for name in CHANGES if name in change and name != "merge"}
    checked = new_job({"lane": "any", **content})
    if checked.target is not None and (problem := target_problem(checked.target)):
        raise InvalidJob("target", problem)
    kept: dict[str, str | None] = {name: getattr(checked, name) for name in content}
    if "merge" in change:
        kept["merge"] = _patch(change["merge"])
    return json.dumps(kept)


def _patch(patch: object) -> str:
    if not isinstance(patch, Mapping) or not patch:
        raise InvalidQuery("change", 'merge is an object of what changes, like {"url": "https://…"}')
    try:
        text = dumped(dict(patch))
    except (ValueError, TypeError) as error:
        raise InvalidJob("merge", str(error)) from None
    if len(text.encode()) > MAX_PATCH_BYTES:
        raise InvalidQuery("change", f"merge is larger than {MAX_PATCH_BYTES} bytes")
    return text
