"""Make the two texts that prompts are cut from: `python scripts/corpora.py`, with Python 3.11.7.

The copies in the package are fixed, so that prompts have the same bytes whatever Python runs the program. Another Python
has another text: what this writes is then another corpus, and `SHA256` in `workload/corpora.py` has to follow.

| corpus    | taken from                                             | kept                                                |
| --------- | ------------------------------------------------------ | --------------------------------------------------- |
| `english` | `pydoc_data.topics`: parts of Python's language        | paragraphs of prose, each once, on one line; no     |
|           | reference, its topics in the order of their names      | headings, grammar, code or tables                   |
| `code`    | modules of the standard library that name no owner or  | whole files in ASCII, without white space at the    |
|           | licence of their own, in the order of their paths      | ends of lines, up to CODE_BYTES                     |
"""

from __future__ import annotations

import hashlib
import lzma
import platform
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

DATA = Path(__file__).parent.parent / "src" / "inferometer" / "workload" / "data"

CODE_BYTES = 1_600_000
SMALLEST, LARGEST = 2_000, 40_000
LEFT_OUT = {
    "test", "tests", "idlelib", "lib2to3", "turtledemo", "pydoc_data", "encodings", "ensurepip", "distutils",
    "site-packages", "dist-packages",
}  # fmt: skip
"""Tests, tables, other people's packages, and what later Pythons no longer have."""

SHORTEST = 40
SYMBOLS = re.compile(r"[=(){}\[\]_<>|+\\^%$#@~]")
MOST_SYMBOLS = 0.08
"""Prose about a language holds some of its signs; a paragraph with more of them is code or grammar."""


def english() -> str:
    """Paragraphs parted by an empty line."""
    found = dict.fromkeys(paragraph for _, text in sorted(topics.items()) for paragraph in _prose(text))
    return "\n\n".join(found)


def _prose(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text):
        joined = re.sub(
            r"(?<=\w-)\n\s*(?=\w)", "", block
        )  # a compound word that was parted at the end of a line
        paragraph = re.sub(r"\s+", " ", joined).strip().removeprefix("* ")
        if (
            len(paragraph) >= SHORTEST
            and re.match(r'["“]?[A-Z]', paragraph)
            and paragraph[-1] in ".!?:"
            and not re.search(r"::=|>>>|\*\*\*|===|---|\w {3,}\w", block)
            and len(SYMBOLS.findall(paragraph)) <= MOST_SYMBOLS * len(paragraph)
        ):
            yield paragraph


def code() -> str:
    """Modules parted by two empty lines."""
    root = Path(sysconfig.get_path("stdlib"))
    chosen: list[str] = []
    room = CODE_BYTES
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if LEFT_OUT.intersection(parts) or path.name.startswith(("_sysconfigdata", "sitecustomize")):
            continue
        content = path.read_bytes()
        owned = re.search(rb"copyright|licen[cs]e|all rights reserved|\(c\) ", content, re.IGNORECASE)
        if SMALLEST <= len(content) <= min(LARGEST, room) and content.isascii() and not owned:
            lines = [line.rstrip() for line in content.decode().splitlines()]
            chosen.append("\n".join(lines).strip())
            room -= len(content)
    return "\n\n\n".join(chosen)


def main() -> None:
    """Write both, and say what they are."""
    for name, text in (("english", english()), ("code", code())):
        raw = text.encode()
        packed = lzma.compress(raw, preset=9 | lzma.PRESET_EXTREME)
        (DATA / f"{name}.txt.xz").write_bytes(packed)
        digest = hashlib.sha256(raw).hexdigest()
        print(f"{name}: {len(text):,} characters, {len(packed):,} bytes packed, sha256 {digest}")
    print(f"from Python {platform.python_version()}")


if __name__ == "__main__":
    main()
