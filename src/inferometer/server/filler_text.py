"""What the reference engine says: English prose, one cl100k token an event, whatever the length asked for.

cl100k cuts text before it merges: a space with the letters after it is one piece, and so is a punctuation mark. Every piece
below is one token by itself, and no two neighbours could be cut as one piece (no two marks in a row, every word with its space
in front), so n pieces joined are n tokens however often the passage comes round and wherever it starts. A test counts them.
"""

from __future__ import annotations

import re

_PASSAGE = """
 A measurement is only as good as the clock that made it . When two people time the same race and disagree , the first
 question is not who won , but who was looking at the line . A good observer writes down what was seen , when it was seen ,
 and how far the hand that held the watch could be trusted . A poor one writes down a number and goes home . The difference
 does not show on the page ; it shows a year later , when somebody else tries to do the same thing and cannot .

 So we begin with the simple parts . Light travels down two paths of equal length and meets itself again . If nothing has
 changed along the way , the waves agree and the picture is bright . If one path is longer by less than the width of a hair ,
 the picture turns dark , and the dark can be counted . That is all there is to the method , and it is enough to weigh a star ,
 to watch the ground move , and to hear two distant bodies fall into each other long before there were people to listen .

 The work of a careful person is mostly patience . Check the level , wait for the room to grow quiet , take the same reading
 again , and keep the one that does not fit . Most of what we know about the world was once a small error that would not go
 away . Someone looked at it for a long time , and then , one evening , it was the answer .
"""

PIECES: tuple[str, ...] = tuple(
    piece if piece in ",.;" else f" {piece}" for piece in re.findall(r"[A-Za-z]+|[,.;]", _PASSAGE)
)


def text(start: int, count: int) -> str:
    """`count` tokens of the passage from piece `start` on, coming round as often as needed."""
    size = len(PIECES)
    start %= size
    turns, rest = divmod(start + count, size)
    return "".join((PIECES * turns + PIECES[:rest])[start:]) if turns else "".join(PIECES[start:rest])
