"""Lines of styled text, before any terminal: what panels draw with and tests read.

A `Line` is a list of `(text, style)`; styles are words ("good", "dim bold", "seat3") that the palette gives
colours. There is no markup, so nothing that a player wrote can be taken for any.
"""

from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size

Span = tuple[str, str]
Line = list[Span]


def width_of(line: Iterable[Span]) -> int:
    """Return how many cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


def plain(lines: Iterable[Line]) -> str:
    """Return lines as text."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def fit(text: str, width: int) -> str:
    """Return `text` in exactly `width` cells, with an ellipsis where something is cut off."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return set_cell_size(text, width)


def crop(line: Line, width: int) -> Line:
    """Return the line in at most `width` cells."""
    if width_of(line) <= width:
        return line
    cut: Line = []
    left = width
    for text, style in line:
        size = cell_len(text)
        if size >= left:
            cut.append((fit(text, left) if size > left else text, style))
            break
        cut.append((text, style))
        left -= size
    return cut


def spread(left: Line, right: Line, width: int) -> Line:
    """Return `left` and `right` at both ends of a line of `width` cells; where both do not fit, `left` gives way."""
    room = width - width_of(right)
    left = crop(left, max(room - 1, 0))
    return [*left, (" " * max(room - width_of(left), 0), ""), *right]


def wrap(text: str, width: int) -> list[str]:
    """Return `text` broken between words into lines of at most `width` cells; longer words are cut."""
    width = max(width, 1)
    if text.isascii():
        if len(text) <= width:
            return [text]
    elif cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    current, size = "", 0
    for word in text.split(" "):
        length = len(word) if word.isascii() else cell_len(word)
        if current and size + 1 + length <= width:
            current, size = f"{current} {word}", size + 1 + length
            continue
        if current:
            lines.append(current)
        if length > width:
            *whole, word = chop_cells(word, width) or [""]
            lines += whole
            length = cell_len(word)
        current, size = word, length
    lines.append(current)
    return lines


def flow(chunks: Sequence[Line], width: int, *, gap: str = "  ") -> list[Line]:
    """Return the chunks laid side by side, as many in a line as fit into `width` cells."""
    lines: list[Line] = [[]]
    used = 0
    for chunk in chunks:
        size = width_of(chunk)
        if used and used + len(gap) + size > width:
            lines.append([])
            used = 0
        if used:
            lines[-1].append((gap, ""))
            used += len(gap)
        lines[-1] += chunk
        used += size
    return [crop(line, width) for line in lines]


def meter(count: int, whole: int, cells: int) -> str:
    """Return a bar of `cells` cells, filled by `count` of `whole`."""
    filled = round(cells * count / whole) if whole else 0
    if count and not filled:
        filled = 1
    return "█" * filled + "░" * (cells - filled)
