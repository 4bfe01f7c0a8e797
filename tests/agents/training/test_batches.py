import random
from pathlib import Path

import numpy as np
import pytest

from agents.errors import BadRollout
from agents.policy.base import Constraint
from agents.policy.chat import ChatTokenizer
from agents.policy.constraints import Guides
from agents.training.batches import FILLING, Asked, Decision, Encoder, passes
from agents.training.plan import asked_of
from agents.training.spellings import spellings

pytest.importorskip("transformers")

CHOICES = Constraint(choices=("approve", "reject", "approve it"))
TEAM = Constraint(schema={"type": "array", "items": {"enum": ["0", "1"]}, "minItems": 1, "maxItems": 2})


@pytest.fixture(scope="module")
def encoder(model_folder: Path) -> Encoder:
    inner = ChatTokenizer(model_folder).inner
    return Encoder(Guides(inner, vocabulary_size=len(inner)), len(inner))


def decide(
    encoder: Encoder, prompt: tuple[int, ...], tokens: tuple[int, ...], constraint: Constraint | None = None
) -> Decision:
    return encoder.decide(asked_of(prompt, tokens, constraint, temperature=1.0, top_p=1.0), constraint)


def test_free_text_is_all_choices(encoder: Encoder) -> None:
    found = decide(encoder, (5, 6), (7, 8, 0))
    assert [(one.place, one.token, one.ids, one.mask) for one in found.chosen] == [
        (0, 7, None, None),
        (1, 8, None, None),
        (2, 0, None, None),
    ]


def test_tokens_that_were_forced_are_no_choices(encoder: Encoder) -> None:
    for text, tokens in spellings(encoder.guides, CHOICES.choices or ()):
        found = decide(encoder, (5,), tokens, CHOICES)
        assert all(one.ids is not None and len(one.ids) > 1 and one.token in one.ids for one in found.chosen)
        guide = encoder.guides.guide(CHOICES)
        forced = []
        for place, token in enumerate(tokens):
            forced += [place] if guide.forced is not None else []
            if token != encoder.guides.vocabulary.end:
                guide.advance(token)
        assert {one.place for one in found.chosen} == set(range(len(tokens))) - set(forced)
        assert text != "reject" or len(tokens) - 1 in forced  # nothing but the end follows it


def test_a_schema_is_followed_too(encoder: Encoder, model_folder: Path) -> None:
    tokens = (*ChatTokenizer(model_folder).encode('["0"]'), encoder.guides.vocabulary.end)
    found = decide(encoder, (5,), tokens, TEAM)
    assert found.chosen and all(one.ids is not None or one.mask is not None for one in found.chosen)


def ids(encoder: Encoder, text: str) -> tuple[int, ...]:
    return tuple(encoder.guides.vocabulary.by_bytes[bytes([byte])][0] for byte in text.encode())


def test_what_was_not_allowed_is_refused(encoder: Encoder) -> None:
    with pytest.raises(BadRollout, match="none of those that were allowed"):
        decide(encoder, (5,), (*ids(encoder, "maybe"), 0), CHOICES)
    with pytest.raises(BadRollout, match="written by another model"):
        decide(encoder, (5,), (100_000,))
    with pytest.raises(BadRollout, match="does not fit its constraint"):
        decide(encoder, (5,), (6,), Constraint(choices=("",)))


def random_decisions(encoder: Encoder, count: int) -> list[Decision]:
    rng = random.Random(3)
    spelled = spellings(encoder.guides, CHOICES.choices or ())
    found = []
    for _ in range(count):
        prompt = (9, 9, *(rng.randrange(20, 23) for _ in range(rng.randint(1, 6))))
        if rng.random() < 0.5:
            found.append(
                decide(encoder, prompt, tuple(rng.randrange(20, 24) for _ in range(rng.randint(1, 4))))
            )
        else:
            found.append(decide(encoder, prompt, rng.choice(spelled)[1], CHOICES))
    return found


@pytest.mark.parametrize("max_trees", [1, 3])
@pytest.mark.parametrize(("max_tokens", "max_decisions"), [(10_000, 10_000), (40, 10_000), (1, 1), (60, 5)])
def test_every_choice_is_in_one_pass_where_its_prompt_ends(
    encoder: Encoder, max_tokens: int, max_decisions: int, max_trees: int
) -> None:
    decisions = random_decisions(encoder, 60)
    found = passes(decisions, max_tokens=max_tokens, max_decisions=max_decisions, max_trees=max_trees)
    seen: list[int] = []
    for one in found:
        assert len(one.decisions) <= max_decisions
        assert all(len(tree.tokens) <= max_tokens for tree in one.packs) or len(one.decisions) == 1
        assert len(one.packs) <= max_trees
        assert one.nodes >= (1 - FILLING) * len(one.packs) * one.width
        seen += one.decisions
        for at, index in enumerate(one.decisions):
            decision = decisions[index]
            for place, choice in zip(range(one.starts[at], one.starts[at + 1]), decision.chosen, strict=True):
                assert one.token[place] == choice.token
                where, node = divmod(int(one.rows[one.row[place]]), one.width)
                tree, path = one.packs[where], list[int]()
                while node >= 0:
                    path.append(int(tree.tokens[node]))
                    node = int(tree.parents[node])
                before = (*decision.asked.prompt_ids, *decision.asked.token_ids[: choice.place])
                assert tuple(reversed(path)) == before
                listed = np.flatnonzero(one.listed == place)
                assert (choice.ids is not None) == bool(len(listed))
                if choice.ids is not None:
                    (line,) = listed
                    assert one.ids[line][~one.barred[line]].tolist() == choice.ids.tolist()
                    assert one.ids[line, one.column[line]] == choice.token
    assert sorted(seen) == [index for index, one in enumerate(decisions) if one.chosen]


def test_what_prompts_share_is_laid_out_once(encoder: Encoder) -> None:
    shared = tuple(range(20, 60))
    decisions = [decide(encoder, (*shared, 70 + number), (5, 6)) for number in range(10)]
    (one,) = passes(decisions, max_tokens=1000, max_decisions=100)
    assert one.nodes == len(shared) + 10 * 2


def test_what_shares_nothing_is_computed_apart_once_a_pass_is_filled(encoder: Encoder) -> None:
    unlike = [
        decide(encoder, tuple(range(20 + 30 * number, 50 + 30 * number)), (5, 6)) for number in range(6)
    ]
    alike = [decide(encoder, (*range(300, 330), 70 + number), (5, 6)) for number in range(6)]

    def sizes(least: int | None) -> list[int]:
        found = passes([*unlike, *alike], max_tokens=1000, max_decisions=100, least_tokens=least)
        return sorted(len(one.decisions) for one in found)

    assert sizes(None) == [12]
    assert sizes(1) == [1] * 6 + [6]
    assert sizes(40) == [2] * 3 + [6]


def test_decisions_without_choices_are_left_out(encoder: Encoder) -> None:
    only = Constraint(choices=("approve",))
    spelled = [tokens for _, tokens in spellings(encoder.guides, ("approve",))]
    plain = Decision(Asked((5,), spelled[0], only.choices, "", 1.0, 1.0), ())
    assert passes([plain], max_tokens=100, max_decisions=10) == []
