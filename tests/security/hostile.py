"""Forty texts that were made to hurt somebody: a browser, a terminal, a log, a database, a parser."""

from html.parser import HTMLParser
from typing import Final

HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><script src=//evil.example/x.js></script>',
    "'><img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "javascript:alert(1)",
    "</textarea></title></style><script>alert(1)</script>",
    '<a href="javascript:alert(1)">x</a>',
    '" autofocus onfocus=alert(1) x="',
    "{{7*7}}${7*7}<%= 7*7 %>#{7*7}",
    "{% raw %}{{ config }}{% endraw %}",
    '<!--#exec cmd="id"--><![CDATA[<x>]]>',
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "</script><script>alert(1)//",
    "'; DROP TABLE penstock_jobs; --",
    "' OR '1'='1",
    '" OR 1=1 --',
    "1); DELETE FROM penstock.jobs; --",
    "%' AND 1=(SELECT COUNT(*) FROM penstock_users) --",
    ":name :1 $1 ? %s %(name)s",
    "\\'; SELECT pg_sleep(5); --",
    "../../../../etc/passwd",
    "..%2f..%2f..%2fetc%2fpasswd",
    "C:\\Windows\\System32\\..\\config",
    "file:///etc/passwd",
    "a\r\nSet-Cookie: x-injected=1",
    "a\nX-Injected: 1\n\n<html>",
    "%0d%0aX-Injected:%201",
    "a\x00b",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x1b[2J\x1b[H\x9b31m",
    "bell\x07 back\x08\x08 cr\rover",
    "\u202egnp.exe\u202c \u2066hidden\u2069",
    "zero\u200bwidth\ufeff\u00ad",
    "line\u2028para\u2029\u0085",
    "\ud800 lone",
    "Z̷̢̛a̵l̷g̶o̸" * 20,
    "🧨👩‍👩‍👧‍👦" * 10,
    '=HYPERLINK("http://evil.example","x")',
    "A" * 1500,
)
OURS: Final = ("/", "#", "?")


class Page(HTMLParser):
    """Reads a page and notes what no page of ours holds."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._script: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what runs, or leads elsewhere."""
        given = {name: value or "" for name, value in attrs}
        if tag in {"iframe", "object", "embed", "base", "img", "applet"}:
            self.found.append(tag)
        if tag == "script" and not given.get("src", "").startswith("/static/"):
            self.found.append(f"script {given}")
        self.found += [f"{name}={value}" for name, value in given.items() if name.startswith("on")]
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            value = given.get(name)
            if value is not None and (not value.startswith(OURS) or value.startswith(("//", "/\\"))):
                self.found.append(f"{name}={value}")
        if "style" in given:
            self.found.append(f"style={given['style']}")
        self._script = tag if tag in {"script", "style"} else None

    def handle_data(self, data: str) -> None:
        """Note a script or style that stands in the page itself."""
        if self._script is not None and data.strip():
            self.found.append(f"inline {self._script}: {data[:80]}")
        self._script = None


def worries(html: str) -> list[str]:
    """Return what a page holds that it should not."""
    page = Page()
    page.feed(html)
    page.close()
    return page.found
