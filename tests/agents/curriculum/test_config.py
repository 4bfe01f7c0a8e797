import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from agents.curriculum.config import CurriculumConfig, Mix
from agents.errors import BadCurriculum


def test_the_defaults_are_the_mix_that_is_documented() -> None:
    config = CurriculumConfig()
    assert (config.mix.bottleneck, config.mix.coverage, config.mix.curve, config.mix.random) == (
        0.7,
        0.2,
        0,
        0.1,
    )
    assert config.bottleneck.cap == config.bottleneck.below == 0.6
    assert config.max_task_retry == 8


def test_the_digest_covers_every_value_and_nothing_else() -> None:
    text = "[mix]\nbottleneck = 0.7\ncoverage = 0.2\nrandom = 0.1\n"
    assert CurriculumConfig.from_text(text).digest == CurriculumConfig().digest
    other = CurriculumConfig.from_text("[alarms]\nwindow = 51\n")
    assert other.digest != CurriculumConfig().digest
    assert len(other.digest) == 64


def test_a_file_is_read_like_text(tmp_path: Path) -> None:
    path = tmp_path / "curriculum.toml"
    path.write_text(
        "skills = ['open', 'fetch']\n[mix]\nbottleneck = 0\ncoverage = 0\ncurve = 1\nrandom = 0\n"
    )
    config = CurriculumConfig.load(path)
    assert config.skills == ("open", "fetch")
    assert config.mix == Mix(bottleneck=0, coverage=0, curve=1, random=0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mix]\nrandom = 0.2\n", "c.toml: mix: the weights sum to 1.1, they should sum to 1"),
        (
            "skills = ['open', 'fetsh']\n",
            (
                "c.toml: skills: unknown skill 'fetsh', did you mean 'fetch'?; allowed are: "
                "navigate, fetch, open, deliver, order, avoid, dodge"
            ),
        ),
        (
            "[switch]\nskills = ['jump']\n",
            (
                "c.toml: switch.skills: unknown skill 'jump'; allowed are: "
                "navigate, fetch, open, deliver, order, avoid, dodge"
            ),
        ),
        ("skills = []\n", "c.toml: skills: got none, one at least is needed"),
        ("skills = ['open', 'open']\n", "c.toml: skills: got a skill twice, each may come once"),
        (
            "[mix]\nbotleneck = 0.7\n",
            (
                "c.toml: unknown key 'mix.botleneck', did you mean 'bottleneck'?; allowed are: "
                "bottleneck, coverage, curve, random"
            ),
        ),
        ("[mix]\nrandom = -0.1\n", "c.toml: mix.random: got -0.1, it should be greater than or equal to 0"),
        ("mix = 3\n", "c.toml: mix: got 3, it should be a table"),
        ("version = 2\n", "c.toml: version: got 2, this program reads 1"),
        (
            "[band]\nlow = 0.9\n",
            "c.toml: band: far 0.05, low 0.9 and high 0.8 should rise in this order",
        ),
        (
            "[curve]\ntarget = 0.9\n",
            "c.toml: curve.target: got 0.9, it should lie in the band from 0.2 to 0.8",
        ),
        (
            "[bottleneck]\ncap = 0.1\n",
            "c.toml: bottleneck.cap: got 0.1, with 7 skills at least 0.143 is needed",
        ),
        ("[review]\nsize = 20\n", "c.toml: review: size 20 should be below every 20"),
        (
            "[scales.objects]\nlow = 5\nhigh = 5\n",
            "c.toml: scales.objects: low 5 should be below high 5",
        ),
        ("max_task_retry = 0\n", "c.toml: max_task_retry: got 0, it should be greater than or equal to 1"),
        ("mix = [", "c.toml: no valid TOML: invalid value (at end of document)"),
    ],
)
def test_what_is_wrong_is_one_clear_line(text: str, message: str) -> None:
    with pytest.raises(BadCurriculum) as caught:
        CurriculumConfig.from_text(text, where="c.toml")
    assert str(caught.value) == message


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadCurriculum, match="cannot read the file: No such file"):
        CurriculumConfig.load(tmp_path / "none.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff")
    with pytest.raises(BadCurriculum, match="it is no UTF-8 text"):
        CurriculumConfig.load(tmp_path / "odd.toml")


def test_every_setting_is_documented_with_its_default_and_meaning() -> None:
    page = (Path(__file__).parents[3] / "docs" / "curriculum.md").read_text(encoding="utf-8")
    rows = list(leaves(CurriculumConfig()))
    assert len(rows) > 50
    for key, value, meaning in rows:
        default = "—" if value is None else f"`{json.dumps(value)}`"
        assert f"| `{key}` | {default} | {meaning} |\n" in page


def leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, object, str | None]]:
    """Yield key, default and description of every setting."""
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value, info.description
