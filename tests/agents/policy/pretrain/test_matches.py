"""What the model learns from."""

from collections import Counter

from agents.policy.pretrain.matches import GAMES, KEPT, MIXED, Plan, plans, play
from agents.policy.pretrain.words import count_words
from agents.prompting.answers import parse_answer
from agents.prompting.parse import Answer
from games.registry import load_game


def _play(plan: Plan) -> list[tuple[str, ...]]:
    samples = play(plan, budget_tokens=384, count=count_words)
    return [(s.label, s.team, s.answer, *(m.content for m in s.messages)) for s in samples]


def test_the_same_seed_gives_the_same_matches_and_another_gives_others() -> None:
    assert plans(20, seed=3) == plans(20, seed=3)
    assert plans(20, seed=3) != plans(20, seed=4)
    plan = next(plan for plan in plans(5, seed=3) if plan.game == "avalon")
    assert _play(plan) == _play(plan)


def test_plans_are_matches_that_can_be_played_in_all_games_sizes_and_mixtures() -> None:
    made = plans(400, seed=0)
    assert {plan.game for plan in made} == set(GAMES)
    for plan in made:
        load_game(plan.game).new(seed=plan.seed, seats=plan.seats, options=plan.options)
        assert len(plan.guests) < plan.seats
    sizes = Counter((plan.game, plan.seats) for plan in made)
    assert all(sizes["avalon", n] for n in range(5, 11)) and all(sizes["werewolf", n] for n in range(5, 13))
    mixed = sum(bool(plan.guests) for plan in made) / len(made)
    assert abs(mixed - MIXED) < 0.05


def test_answers_are_legal_and_in_the_form_in_which_they_are_read_in_play() -> None:
    labels = Counter()
    for plan in plans(12, seed=1):
        for sample in play(plan, budget_tokens=384, count=count_words):
            answer = parse_answer(sample.space, sample.answer)
            assert isinstance(answer, Answer) and sample.space.contains(answer.action)
            assert sum(count_words(message.content) for message in sample.messages) <= 384
            labels[sample.label] += 1
    assert labels.keys() >= {
        "open",
        "answer",
        "speak",
        "vote",
        "propose",
        "wolf_target",
        "see",
        "protect",
        *KEPT,
    }


def test_nothing_is_learned_from_guests() -> None:
    plan = Plan("avalon", 5, {}, 7, frozenset(range(4)))
    asked = list(play(plan, budget_tokens=384, count=count_words))
    assert asked and all("\nyou 4 " in sample.messages[1].content for sample in asked)
