"""An HTML page as a browser would see it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "img", "br", "hr", "input"}
LOADING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "manifest", "ping"}


class Page(HTMLParser):
    """What a browser would see: tags with attributes, scripts, visible text, ids, and whether every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    # HTMLParser calls the four methods below by name.
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the tag; elements that hold something stay open until their end tag."""
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID and tag not in ("circle", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a self-closed tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """End tags come in the reverse order of their start tags."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Sort text into scripts and words."""
        if self.open and self.open[-1] == "script":
            self.scripts.append((self.tags[-1][1], data))
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """What can be read, white space folded."""
        return " ".join("".join(self.words).split())
