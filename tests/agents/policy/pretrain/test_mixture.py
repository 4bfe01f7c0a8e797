"""What may be learned from, and how it is written."""

import pytest

from agents.errors import BadModel
from agents.policy.pretrain.matches import plans, play
from agents.policy.pretrain.mixture import GAMES, Mixture, Source, parse_source
from agents.policy.pretrain.words import count_words
from games.errors import BadOption


def test_sources_are_read_as_they_are_written() -> None:
    assert parse_source("avalon") == Source("avalon")
    assert parse_source("werewolf:5") == Source("werewolf", seats=5)
    assert parse_source("grid") == Source("grid")
    assert parse_source("grid:fetch,navigate,fetch") == Source("grid", skills=("fetch", "navigate"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("chess", "got 'chess', allowed are avalon, werewolf, kuhn, grid, text"),
        ("", "got ''"),
        ("avalon:4", "avalon has 5 to 10 seats"),
        ("avalon:", "avalon has 5 to 10 seats"),
        ("kuhn:²", "kuhn has 2 seats"),
        ("grid:fly", "'fly' is no skill there; they are navigate, fetch"),
        ("grid:", "'' is no skill"),
        ("text:dodge", "'dodge' is no skill there"),
    ],
)
def test_what_is_no_source_is_told_in_one_line(text: str, told: str) -> None:
    with pytest.raises(BadModel) as caught:
        parse_source(text)
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_options_are_of_games_that_are_named_with_their_seats() -> None:
    with pytest.raises(BadModel, match="--option: got speech_rounds, but no game is named with its seats"):
        Mixture((Source("avalon"),), options={"speech_rounds": 0})
    with pytest.raises(BadOption, match="avalon option 'speech'"):
        Mixture((Source("avalon", seats=5),), options={"speech": 0})


def test_a_share_is_a_share_and_a_name_comes_once() -> None:
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(BadModel, match="0 to 1 is allowed"):
            Mixture(random=share)
    with pytest.raises(BadModel, match="--game: avalon comes twice"):
        Mixture((Source("avalon"), Source("avalon", seats=5)))


def test_with_seats_every_decision_is_learned_from() -> None:
    (plan,) = plans(1, seed=4, mixture=Mixture((Source("werewolf", seats=5),)))
    some = list(play(plan._replace(whole=False), budget_tokens=384, count=count_words))
    every = list(play(plan, budget_tokens=384, count=count_words))
    assert plan.whole and len(every) > len(some)
    assert not plans(1, seed=4, mixture=Mixture((Source("werewolf"),)))[0].whole


def test_random_bots_may_be_cloned_in_the_proportions_of_the_embedded_model() -> None:
    alike = plans(20, seed=1, mixture=Mixture(random=1.0))
    assert [plan.game for plan in alike].count("avalon") == [plan.game for plan in plans(20, seed=1)].count(
        "avalon"
    )
    assert all(len(plan.novices) == plan.seats for plan in alike)


def test_a_source_with_seats_is_that_game_alone() -> None:
    mixture = Mixture((Source("avalon", seats=6),), options={"speech_rounds": 0})
    made = plans(20, seed=1, mixture=mixture)
    assert len(made) == 20 and {(plan.game, plan.seats) for plan in made} == {("avalon", 6)}
    assert all(plan.options == {"speech_rounds": 0} and not plan.novices for plan in made)
    assert mixture.names == ("avalon",) and Mixture().names == GAMES


def test_sources_come_in_equal_numbers() -> None:
    made = plans(10, seed=1, mixture=Mixture((Source("werewolf"), Source("kuhn"))))
    assert sorted(plan.game for plan in made) == ["kuhn"] * 10 + ["werewolf"] * 10


def test_novices_are_random_bots_from_whom_is_learned() -> None:
    mixture = Mixture((Source("werewolf", seats=5),), random=0.5)
    made = plans(400, seed=2, mixture=mixture)
    assert not any(plan.guests for plan in made)
    assert abs(sum(len(plan.novices) for plan in made) / 2000 - 0.5) < 0.05
    some = made[:6]
    guessed, scripted = (
        [
            sample
            for plan in some
            for sample in play(plan._replace(novices=who), budget_tokens=384, count=count_words)
        ]
        for who in (frozenset(range(5)), frozenset[int]())
    )
    seats = {sample.messages[1].content.split("\nyou ")[1].split()[0] for sample in guessed}
    assert seats == set("01234")
    assert [sample.answer for sample in guessed] != [sample.answer for sample in scripted]
