"""docs/prompting.md shows prompts as they are, and states the figures that the tests hold to."""

from agents.prompting.answers import MAX_CHOICES
from tests.agents.prompting.page import PAGE, SHOWN, with_prompts
from tests.agents.prompting.test_prompter import COMPACT_AIM, SMALLEST, WANTS

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_prompts_on_the_page_are_those_that_are_written() -> None:
    assert with_prompts(TEXT) == TEXT, "run `python -m tests.agents.prompting.page`"
    assert all(f"<!-- prompt: {game} compact -->" in TEXT for game in SHOWN)


def test_the_page_states_the_bounds_and_the_words() -> None:
    flowing = " ".join(TEXT.split())
    assert f"a budget of {SMALLEST['full']} (full) or {SMALLEST['compact']} (compact)" in flowing
    assert f"are meant for {COMPACT_AIM}:" in flowing
    assert f"more than {MAX_CHOICES:,} combinations" in flowing
    assert all(f"| `{want}` |" in TEXT for want in WANTS)
