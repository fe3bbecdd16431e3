"""The forms of a page, as a browser would find them."""

from html.parser import HTMLParser
from typing import NamedTuple


class Form(NamedTuple):
    """Where a form leads, and its fields with what they hold."""

    method: str
    action: str
    fields: dict[str, str]

    @property
    def kind(self) -> tuple[str, frozenset[str]]:
        """What two forms share that differ only in what they are about."""
        return self.action.rpartition("/")[2], frozenset(self.fields)


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Form] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(Form(given.get("method", "get").lower(), given.get("action", ""), {}))
            self._inside = True
        elif tag in {"input", "textarea", "select", "button"} and given.get("name") and self._inside:
            self.found[-1].fields.setdefault(given["name"], given.get("value", ""))
            if "formaction" in given:
                self.found.append(self.found[-1]._replace(action=given["formaction"]))

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "form"


def forms_of(html: str, at: str) -> list[Form]:
    """Return the forms of a page; one without an address leads to the page itself."""
    page = _Forms()
    page.feed(html)
    page.close()
    return [form._replace(action=form.action or at) for form in page.found]
