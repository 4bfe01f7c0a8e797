"""Text from players, made safe to show.

What another seat said reaches a reader as that seat's quoted words and nothing else: it cannot start a new
line, close its quotation marks, colour a terminal, reverse its direction, or form a role tag or a
chat-template token.
"""

import re
import unicodedata

MAX_NAME_CHARS = 40

_ANGLES = str.maketrans({"<": "‹", ">": "›", "\\": "\\\\", '"': '\\"'})
_PLAIN = re.compile(r"[ !#-;=?-\[\]-~]*")
_BRACKET_TOKEN = re.compile(r"\[(?=/?(?:INST|SYS|AVAILABLE_TOOLS|TOOL))", re.IGNORECASE)
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_EMOJI_JOINERS = frozenset({"\u200d"})


def neutralise(text: str) -> str:
    """Return `text` on one line, with control, format and bidirectional characters written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) if _hidden(c) else c for c in text)


def quote(text: str) -> str:
    """Return `text` between double quotation marks, so that nothing in it can be taken for anything else."""
    if _PLAIN.fullmatch(text) and "[" not in text:
        return f'"{text}"'
    safe = neutralise(text.translate(_ANGLES))
    return '"' + _BRACKET_TOKEN.sub("(", safe) + '"'


def clean_name(name: str) -> str:
    """Return a player's name as it is shown: one line, no tags or hidden characters, at most 40 long."""
    safe = neutralise(name[: 4 * MAX_NAME_CHARS].translate(_ANGLES)).strip()
    safe = _BRACKET_TOKEN.sub("(", safe)
    return safe if len(safe) <= MAX_NAME_CHARS else safe[: MAX_NAME_CHARS - 1] + "…"


def _hidden(c: str) -> bool:
    return unicodedata.category(c) in _HIDDEN_CATEGORIES and c not in _EMOJI_JOINERS


def _escape(c: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c)
    if short is not None:
        return short
    code = ord(c)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
