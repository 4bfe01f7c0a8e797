"""The prompts in docs/prompting.md. `python -m tests.agents.prompting.page` writes them anew."""

import re
from pathlib import Path

from agents.prompting.template import Style
from tests.agents.prompting.tables import Table, play

PAGE = Path(__file__).parents[3] / "docs" / "prompting.md"
SHOWN = {
    "avalon": (Table("avalon", 5, {}), "merlin", "vote"),
    "werewolf": (Table("werewolf", 8, {}), "seer", "vote"),
}
_BLOCK = re.compile(r"(<!-- prompt: (\w+) (\w+) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def shown(game: str, style: Style) -> str:
    """Return the prompt that the page shows: that role's second turn of the kind, or its first where it has one."""
    table, role, label = SHOWN[game]
    prompts = [
        asked.prompters[0].messages(asked.turn, want="action")
        for asked in play(table, seed=5, player="scripted", styles=[(style, 10_000)])
        if asked.state.roles()[asked.seat.seat] == role and asked.turn.space.label == label
    ]
    system, user = prompts[:2][-1]
    return f"[system]\n{system.content}\n\n[user]\n{user.content}\n"


def with_prompts(page: str) -> str:
    """Return the page with its prompts as they are now."""
    return _BLOCK.sub(lambda block: block[1] + shown(block[2], block[3]) + block[5], page)  # type: ignore[arg-type]


if __name__ == "__main__":
    PAGE.write_text(with_prompts(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
