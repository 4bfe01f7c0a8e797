"""All the ways in which choices can be spelled in tokens: what a probability of a choice is summed over."""

from collections.abc import Iterator

from agents.errors import TrainingError
from agents.policy.base import Constraint
from agents.policy.constraints import ChoiceGuide, Guides, Node

MAX_SPELLINGS = 20_000
"""Of one set of choices."""


def spellings(guides: Guides, choices: tuple[str, ...]) -> list[tuple[str, tuple[int, ...]]]:
    """Return every completion that spells one of `choices`, with its text; each ends with the end token.

    Raises `TrainingError` where there are too many, `BadModel` where a choice cannot be written.
    """
    guide = guides.guide(Constraint(choices=choices))
    assert isinstance(guide, ChoiceGuide)
    found: list[tuple[str, tuple[int, ...]]] = []
    for text, tokens in _walk(guides, guide.node):
        if len(found) >= MAX_SPELLINGS:
            raise TrainingError(
                f"choices: {choices[0][:40]!r} and others have over {MAX_SPELLINGS} spellings"
            )
        found.append((text.decode(), tokens))
    return found


def _walk(guides: Guides, root: Node) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    vocabulary = guides.vocabulary
    stack: list[tuple[Node, bytes, tuple[int, ...]]] = [(root, b"", ())]
    while stack:
        node, text, tokens = stack.pop()
        for token in node.allowed:
            if token == vocabulary.end:
                yield text, (*tokens, token)
            else:
                stack.append((node.after(token), text + vocabulary.tokens[token], (*tokens, token)))
