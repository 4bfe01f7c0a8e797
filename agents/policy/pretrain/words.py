"""How text falls apart into words, and which words are common enough to be tokens of their own."""

import re
from collections import Counter
from collections.abc import Iterable

PATTERN = r"[ \n]?[A-Za-z_]+|[ \n]?[0-9]{1,2}|[ \n]?[^\sA-Za-z_0-9]|\s"
"""A word, a number of at most two digits, a sign (each with the space or line end before it), or a lone space."""
FORMS = ("", " ", "\n")
"""What a word may begin with; a known word is known in all forms."""

_WORD = re.compile(PATTERN)


def split(text: str) -> list[str]:
    """Return the pieces of `text`; joined they are `text`."""
    return _WORD.findall(text)


def count_words(text: str) -> int:
    """Return how many tokens a text of known words has."""
    return sum(1 for _ in _WORD.finditer(text))


def common_words(texts: Iterable[str], *, at_least: int = 5, at_most: int = 400) -> list[str]:
    """Return the words that occur in `texts` `at_least` times, in any form, sorted; numbers to 12 always.

    Of more than `at_most` the most frequent are taken.
    """
    counts = Counter(piece[1:] if piece[0] in " \n" else piece for text in texts for piece in split(text))
    del counts[""]
    found = [
        word for word, n in counts.most_common() if n >= at_least and word.isascii() and not word.isdigit()
    ]
    numbers = {str(n) for n in range(13)}
    return sorted({*sorted(found, key=lambda word: (-counts[word], word))[:at_most], *numbers})
