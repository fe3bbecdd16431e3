"""The reference page of the Python client: every method, what it takes, returns and raises, from the code."""

import inspect
from dataclasses import fields, is_dataclass

import penstock
from penstock.bulk import Preview
from penstock.client import Client
from penstock.domain.filters import Page, Span
from penstock.domain.gates import Explanation
from penstock.domain.intake import Content, Fields
from penstock.domain.job import Context, Enqueued, Job, Live
from penstock.domain.operations import Operation
from penstock.domain.queries import Filters
from penstock.errors import PenstockError
from penstock.ports.insight import GroupPage, GroupRow
from penstock.ports.store import Done, Reported, Timeline

RESULTS = (
    *(Enqueued, Job, Live, Context, Page, Timeline, Explanation, GroupPage, GroupRow, Done, Reported),
    *(Preview, Operation, Span),
)
INNER = {"acting", "store"}  # for the API and the command line
INTRO = """\
`Client` blocks, `AsyncClient` has the same methods, awaited (`enqueue_stream` gives an asynchronous
iterator). Both are opened on a database URL, may be shared by threads or tasks, and are closed by `with` or
`close()`. An [introduction](../tutorial/client.md) comes first; the way in over your own connection is
[here](../howto/enqueue-in-your-transaction.md).

Every error that Penstock raises on purpose is a `PenstockError`; its `retryable` says whether the same call
may succeed later. What is wrong with an argument is refused by its name (`field`, `setting`), with what to
write instead, before anything is written.

A verb that a job's state does not allow (`cancel`, `skip`, `hold`, `release`, `retry`, `settle`, `edit`) is
**not** an exception: what the state will be by then is often not known, so the answer tells. Look at it:

```python
from penstock import Client
from penstock.domain.lanes import lane
from penstock.stores.connect import connect

store = connect("sqlite:///penstock.db")
store.migrate()
store.put_lane(lane("orders"), actor="me")
store.close()

with Client("sqlite:///penstock.db", actor="me") as client:
    job = client.enqueue("orders", {"order": 7})
    done = client.release(job.id, reason="it was held, I thought")
    assert done.effect == "refused"  # "now": it was done; "requested": whoever holds the job was asked
    print(done.text)  # why
    assert client.get(job.id).payload == {"order": 7}
```"""


def client_page(note: str) -> str:
    """Return the page."""
    return "\n".join(
        [
            *(note, "", "# Python client", "", INTRO, "", "## Methods", ""),
            *_method("Client", Client.__init__, str(Client.__doc__)),
            *(line for name in methods() for line in _method(name, getattr(Client, name))),
            *("## Fields of a job", "", str(Fields.__doc__), ""),
            *_fields({"lane": "str", "payload": "object", **_hints(Fields)}),
            *("`edit` takes " + ", ".join(f"`{name}`" for name in (*_hints(Content), "run_at")) + ".", ""),
            *("## Filters of a list", "", _prose(str(Filters.__doc__)), ""),
            *_fields(_hints(Filters)),
            *("## What comes back", ""),
            *(line for each in RESULTS for line in _result(each)),
            *("## Errors", "", "All of them are in `penstock.errors`, these in `penstock` as well:", ""),
            *_errors(PenstockError),
            "",
        ]
    )


def methods() -> list[str]:
    """Return the public methods, in the order of the code."""
    found = [name for name, value in vars(Client).items() if callable(value) and not name.startswith("_")]
    return [name for name in found if name not in INNER]


def _method(name: str, function: object, text: str = "") -> list[str]:
    signature = inspect.signature(function)  # type: ignore[arg-type]
    shown = [_parameter(each) for each in signature.parameters.values() if each.name != "self"]
    bare = [each.kind for each in signature.parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in bare:
        first = bare[1:].index(inspect.Parameter.KEYWORD_ONLY)
        shown.insert(first, "*")
    returns = _type(signature.return_annotation)
    arrow = f" -> {returns}" if returns not in {"", "None"} else ""
    return [f"### {name}", "", f"`{name}({', '.join(shown)}){arrow}`", "", _prose(text or _doc(function)), ""]


def _parameter(each: inspect.Parameter) -> str:
    if each.kind is inspect.Parameter.VAR_KEYWORD:
        return f"**{each.name}"
    default = "" if each.default is inspect.Parameter.empty else f"={each.default!r}"
    return f"{each.name}{default}"


def _type(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return _short(str(annotation) if "[" in str(annotation) else text)


def _short(text: str) -> str:
    """Return a type without the modules it lives in."""
    words, word = [], ""
    for letter in text + " ":
        if letter.isalnum() or letter in "._":
            word += letter
        else:
            words.append(word.rpartition(".")[2] + letter)
            word = ""
    return "".join(words).strip()


def _hints(cls: type) -> dict[str, str]:
    return {name: _type(hint) for name, hint in inspect.get_annotations(cls).items()}


def _fields(hints: dict[str, str]) -> list[str]:
    rows = [f"| `{name}` | {hint.replace('|', 'or')} |" for name, hint in hints.items()]
    return ["| name | type |", "| --- | --- |", *rows, ""]


def _result(cls: type) -> list[str]:
    names = [each.name for each in fields(cls)] if is_dataclass(cls) else cls._fields  # type: ignore[attr-defined]
    more = [name for name, value in vars(cls).items() if isinstance(value, property)]
    lines = [f"### {cls.__name__}", "", _prose(_doc(cls)), "", ", ".join(f"`{name}`" for name in names), ""]
    for name in more:
        lines += [f"- `.{name}`: {' '.join(_doc(getattr(cls, name)).split())}"]
    return [*lines, ""] if more else lines


def _errors(cls: type[PenstockError], depth: int = 0) -> list[str]:
    shown = cls.__name__ in penstock.__all__ or cls.__module__ == "penstock.errors"
    mark = "" if cls.__name__ in penstock.__all__ else " (`penstock.errors`)"
    lines = [f"{'  ' * depth}- `{cls.__name__}`{mark}: {_prose(_doc(cls))}"] if shown else []
    for each in sorted(cls.__subclasses__(), key=lambda error: error.__name__):
        if each.__module__ == "penstock.errors":
            lines += _errors(each, depth + 1)
    return lines


def _doc(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def _prose(text: str) -> str:
    return inspect.cleandoc(text)
