from pathlib import Path

import pytest

from agents.errors import TrainingError
from agents.policy.chat import ChatTokenizer
from agents.policy.constraints import Guides
from agents.training.spellings import spellings

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def guides(model_folder: Path) -> Guides:
    inner = ChatTokenizer(model_folder).inner
    return Guides(inner, vocabulary_size=len(inner))


def count(guides: Guides, text: str) -> int:
    """Count the ways to write a text, from its end to its beginning."""
    data = text.encode()
    ways = [0] * len(data) + [1]
    for place in range(len(data) - 1, -1, -1):
        for start in guides.vocabulary.starts(data[place:]):
            ways[place] += ways[place + len(start)] * len(guides.vocabulary.by_bytes[start])
    return ways[0]


@pytest.mark.parametrize("choices", [("approve", "reject"), ("call",), ("ap", "approve", "approve it")])
def test_every_way_to_write_a_choice_is_found_once(guides: Guides, choices: tuple[str, ...]) -> None:
    found = spellings(guides, choices)
    assert len({tokens for _, tokens in found}) == len(found)
    for choice in choices:
        own = [tokens for text, tokens in found if text == choice]
        assert len(own) == count(guides, choice)
        for tokens in own:
            assert tokens[-1] == guides.vocabulary.end
            assert b"".join(guides.vocabulary.tokens[token] for token in tokens[:-1]).decode() == choice


def test_too_many_are_refused_in_one_line(guides: Guides) -> None:
    with pytest.raises(TrainingError, match=r"^choices: [^\n]* over 20000 spellings$"):
        spellings(guides, ("approve reject approve reject approve",))
