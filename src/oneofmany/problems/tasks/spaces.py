"""Spaces as blanks: in boards of n lines with exactly n characters, and between the bars of drawings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby, pairwise

from oneofmany.problems.tasks.lines import BARS, Line, is_border

_BAR = re.compile(f"[{BARS}]")


def spaces_as_blanks(lines: list[Line], symbols: str) -> list[Line]:
    """Replace spaces by dots in boards whose only blanks are spaces.

    Such boards are n lines of exactly n characters, or drawings of n rows with bars in the same places. ``symbols`` are
    the cells that they may have.
    """
    known = {*symbols, *symbols.lower(), " "}
    changed = list(lines)
    for width, group in groupby(range(len(lines)), lambda at: len(lines[at].text)):
        places = [*group]
        texts = [lines[at].text for at in places]
        if _are_boards(texts, width) and all(map(known.issuperset, texts)) and " " in "".join(texts):
            for at in places:
                changed[at] = lines[at]._replace(text=lines[at].text.replace(" ", "."))
    if any(_BAR.search(line.text) for line in lines):
        for _, group in groupby(range(len(lines)), lambda at: bool(lines[at].text.strip())):
            places = [*group]
            rows = [at for at in places if _BAR.search(lines[at].text) and {*lines[at].text} <= known | {*BARS}]
            others = ({*places} - {*rows}) if rows else ()
            if all(is_border(lines[at].text) or {*lines[at].text} <= {*BARS, *"- \t"} for at in others):
                for at, text in zip(rows, _dotted([lines[at].text for at in rows]), strict=False):
                    changed[at] = lines[at]._replace(text=text)
    return changed


def _are_boards(texts: Sequence[str], width: int) -> bool:
    """Whether the lines are one or more boards of this width."""
    if width < 2 or not texts or len(texts) % width:
        return False
    # Several full boards with spaces between the cells can have such lines too.
    return len(texts) == width or not all(text[1::2].isspace() for text in texts)


def _dotted(texts: Sequence[str]) -> list[str]:
    """The rows of a drawn board with dots for its blank cells; nothing if they are not a board with the same bars."""
    n, width = len(texts), max(map(len, texts), default=0)
    texts = [text.ljust(width) for text in texts]
    bars = [[found.start() for found in _BAR.finditer(text)] for text in texts]
    if n < 2 or any(other != bars[0] for other in bars):
        return []
    used = [any(text[at] != " " for text in texts) for at in range(width)]
    ends = [-1, *bars[0], width]
    parts = [range(one + 1, other) for one, other in pairwise(ends)]
    if not any(used[: bars[0][0]]) and not any(used[bars[0][-1] + 1 :]):  # a frame
        parts = parts[1:-1]
    each, rest = divmod(n, len(parts) or n + 1)
    cells = [_places(part, each, used) for part in parts]
    if rest or not all(cells):
        return []
    places = {place for own in cells for place in own}
    return ["".join("." if at in places and c == " " else c for at, c in enumerate(text)) for text in texts]


def _places(part: range, cells: int, used: Sequence[bool]) -> Sequence[int]:
    """The places of the cells between two bars: next to each other, or with a space between them; else nothing."""
    if len(part) == cells:
        return part
    for first in (1, 0):
        own = part[first : first + 2 * cells - 1 : 2]
        left = len(part) - first - (2 * cells - 1)  # characters after the last cell
        if len(own) == cells and 0 <= left <= 1 and not any(used[at] for at in part if at not in own):
            return own
    return ()
