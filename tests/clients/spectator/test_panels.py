"""Panels: drawn from views alone, within their width, and never knowing more than the view does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.spectator.drawing import plain, width_of
from clients.spectator.panels import panel_of
from clients.spectator.panels.generic import GenericPanel
from games.base import Event
from games.registry import load_game
from replays.visitors import OMNISCIENT, PUBLIC, Perspective, visible
from tests.clients.spectator.showing import entries, named

MATCHES = (("avalon", 5), ("avalon", 10), ("werewolf", 9), ("werewolf", 12), ("kuhn", 2))


def views(game: str, seats: int, seed: int, perspective: Perspective) -> Any:
    """Yield the growing view with the event that came last."""
    made, _ = entries(named(game, seats=seats, seed=seed))
    view = load_game(game).view(perspective if isinstance(perspective, int) else None)
    for event in (entry for entry in made if hasattr(entry, "kind")):
        if visible(event, perspective):
            view.update(event)
            yield view, event


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(MATCHES),
    st.integers(0, 200),
    st.sampled_from((PUBLIC, OMNISCIENT, 0, 1)),
    st.integers(14, 60),
)
def test_every_view_is_drawn_within_its_width(
    match: tuple[str, int], seed: int, perspective: Perspective, width: int
) -> None:
    game, seats = match
    for panel in (panel_of(game), GenericPanel()):
        for view, event in views(game, seats, seed, perspective):
            lines = [*panel.board(view, width=width), *panel.brief(view, width=width)]
            if event.kind in panel.ballots:
                ballot = panel.ballot(event, width=width)
                assert ballot
                lines += ballot
            assert all(width_of(line) <= width for line in lines), plain(lines)
            assert len(panel.seats(view, seats)) == seats
            assert panel.mood(event)


@pytest.mark.parametrize("game, seats", [("avalon", 7), ("werewolf", 9)])
def test_a_seat_is_shown_no_role_that_its_view_does_not_hold(game: str, seats: int) -> None:
    panel = panel_of(game)
    for perspective in (PUBLIC, *range(seats)):
        seen = 0
        for view, _ in views(game, seats, 3, perspective):
            if view.over:
                break
            looks = panel.seats(view, seats)
            for seat, look in enumerate(looks):
                if look.role in load_game(game).role_names:
                    assert view.roles[seat] == look.role
                    seen += 1
        assert (seen > 0) == (perspective != PUBLIC or game == "werewolf")


def test_the_avalon_board_says_what_happened_on_the_quests() -> None:
    told = ""
    for view, _ in views("avalon", 5, 1, OMNISCIENT):
        told = plain(panel_of("avalon").board(view, width=40))
        for quest in view.quests:
            assert ("✔" if quest.success else "✘") in told
            assert f"{quest.fails} fail" in told or not quest.fails
    assert " wins:" in told


@pytest.mark.parametrize(
    ("reason", "winner", "told"),
    [
        ("assassination", "good", "Good wins: the assassin missed Merlin"),
        ("assassination", "evil", "Evil wins: the assassin found Merlin"),
        ("three quests", "good", "Good wins: three quests succeeded"),
        ("three failed quests", "evil", "Evil wins: three quests failed"),
        ("five rejections", "evil", "Evil wins: five teams in a row were rejected"),
    ],
)
def test_the_avalon_board_says_why_a_side_has_won(reason: str, winner: str, told: str) -> None:
    state = load_game("avalon").new(seed=1, seats=5)
    view = state.view(None)
    returns = [1.0 if team == winner else -1.0 for team in state.teams()]
    end = {"reason": reason, "returns": returns, "teams": list(state.teams()), "roles": list(state.roles())}
    view.update(Event("end", end))
    assert told in plain(panel_of("avalon").board(view, width=50))


@pytest.mark.parametrize(("approved", "told"), [(True, "is approved"), (False, "is rejected")])
def test_an_avalon_ballot_says_what_became_of_the_team(approved: bool, told: str) -> None:
    votes = ["approve"] * (3 if approved else 2) + ["reject"] * (2 if approved else 3)
    data = {"quest": 1, "team": [0, 1], "votes": votes, "approved": approved}
    assert f"the team {told}" in plain(panel_of("avalon").ballot(Event("votes", data), width=60))


def test_a_werewolf_ballot_names_every_voter_also_where_there_is_little_room() -> None:
    votes = [[seat, 3 if seat != 3 else None] for seat in range(11)]
    event = Event("vote", {"votes": votes, "out": 3})
    wide = plain(panel_of("werewolf").ballot(event, width=60))
    narrow = plain(panel_of("werewolf").ballot(event, width=20))
    assert "█" in wide and "← 0 1 2 4 5 6 7 8 9 10" in wide
    assert narrow.splitlines() == ["Voted out: 3", "  3 ← 0 1 2 4 5 6 7", "      8 9 10", "  – ← 3"]


def test_the_werewolf_board_says_who_died_and_of_what() -> None:
    for view, _ in views("werewolf", 9, 2, PUBLIC):
        told = plain(panel_of("werewolf").board(view, width=50))
        for death in view.deaths:
            assert f"{death.seat} " in told and str(death.role) in told
        assert "attack" not in told and "protects" not in told, "the night's deeds are no public matter"
    assert view.deaths


def test_roles_have_glyphs_of_their_own_one_cell_wide() -> None:
    for game in ("avalon", "werewolf"):
        roles = [panel_of(game).role(role) for role in load_game(game).role_names]
        assert len({role.glyph for role in roles}) == len(roles)
        assert all(width_of([(role.glyph, "")]) == 1 for role in roles)


def test_a_game_without_a_panel_has_the_generic_one() -> None:
    assert type(panel_of("some game from elsewhere")) is GenericPanel
