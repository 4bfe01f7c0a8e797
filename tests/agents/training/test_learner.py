import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.errors import (
    BadAdapter,
    BadCheckpoint,
    BadLearner,
    BadModel,
    BadRollout,
    NotFinite,
    TrainingError,
)
from agents.policy.adapter_files import check_files
from agents.policy.adapters import AdapterStore
from agents.policy.base import Constraint
from agents.training.learner import STATE, Learner
from agents.training.settings import LearnerSettings, LossSettings
from agents.training.trajectories import harvest
from tests.agents.policy.models import save_lora, save_model
from tests.agents.training.made import CHOICES, batch, step, trajectory
from tests.agents.training.playing import play_matches

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

LOSS = LossSettings(kl=0.3, kl_kind="exact", entropy=0.05)


def settings(**changes: Any) -> LearnerSettings:
    given = {"weights": "all", "threads": 1, "lr": 1e-3, "device": "cpu", "reference": "start", "loss": LOSS}
    return LearnerSettings(**{**given, **changes})


def learner(folder: Path, **changes: Any) -> Learner:
    return Learner(folder, settings=settings(**changes))


def weights(one: Learner) -> dict[str, Any]:
    return {name: tensor.detach().clone() for name, tensor in one.model.trained.items()}


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def distance(one: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the length of the difference of two gradients; without another, the gradient's own."""
    return math.sqrt(
        sum(float((value - other.get(name, 0.0)).double().square().sum()) for name, value in one.items())
    )


def gradients(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return the gradient of one update in float64, before the optimiser takes it."""
    made = learner(folder, **({"max_grad_norm": 0.0} | changes))
    made.model.module.double()
    made.move_reference()
    found: dict[str, Any] = {}

    def note(*_: Any) -> None:
        found.update({name: one.grad.clone() for name, one in made.model.trained.items()})

    made._optimizer.register_step_pre_hook(note)
    made.update(*batch(made))
    return found


def test_a_batch_in_eight_parts_is_the_batch(model_folder: Path) -> None:
    whole = gradients(model_folder, pass_tokens=100_000)
    parts = gradients(model_folder, pass_tokens=1, pass_decisions=1)
    assert distance(whole, {}) > 0.1
    assert distance(whole, parts) <= 1e-6
    for trees in (1, 3, 100):  # of unlike widths, side by side
        assert distance(whole, gradients(model_folder, pass_tokens=30, pass_trees=trees)) <= 1e-6
    sequences = gradients(
        model_folder, pass_tokens=30, loss=LOSS.model_copy(update={"aggregate": "sequence"})
    )
    assert distance(whole, sequences) > 0.01


def test_recomputing_activations_changes_nothing(model_folder: Path) -> None:
    plain = gradients(model_folder)
    assert distance(plain, gradients(model_folder, checkpointing=True)) <= 1e-6


def test_the_gradient_is_that_of_finite_differences(model_folder: Path) -> None:
    found = gradients(model_folder)
    made = learner(model_folder)
    given, advantages = batch(made)
    name = max(found, key=lambda one: float(found[one].abs().max()))
    place = int(found[name].abs().argmax())
    weight = made.model.trained[name].data.view(-1)
    small = 1e-2 / max(float(found[name].abs().max()), 1.0)

    # The old policy and the corrections are constants of the derivative, so they are those of the middle.
    middle = {id(one): values for one, values in zip(_steps(given), _logprobs(made, given), strict=True)}

    def loss(shift: float) -> float:
        from agents.training.loss import grpo_loss, token_weights

        weight[place] += shift
        new = _logprobs(made, given)
        weight[place] -= shift
        sizes = [sum(_choices(made, one) for one in each.steps) for each in given]
        each_weight = token_weights(sizes, aggregate="token")[0]
        total = 0.0
        flat = [value for row in advantages for value in row]
        for one, row, advantage in zip(_steps(given), new, flat, strict=True):
            old, drawn = torch.tensor(middle[id(one)]), torch.tensor(one.logprobs)
            kept = torch.tensor([value != 0.0 for value in middle[id(one)]], dtype=torch.float64)
            plain = LOSS.model_copy(update={"kl": 0.0, "entropy": 0.0})
            value, _ = grpo_loss(
                torch.tensor(row, dtype=torch.float64),
                old.double(),
                torch.full_like(kept, advantage),
                kept * each_weight,
                plain,
                sampler=torch.where(kept > 0, drawn.double(), old.double()),
            )
            total += float(value)
        return total

    plain = gradients(model_folder, loss=LOSS.model_copy(update={"kl": 0.0, "entropy": 0.0}))
    slope = (loss(small) - loss(-small)) / (2 * small)
    assert slope == pytest.approx(float(plain[name].view(-1)[place]), rel=0.02, abs=1e-4)


def _steps(given: Any) -> list[Any]:
    return [one for each in given for one in each.steps]


def _choices(made: Learner, one: Any) -> int:
    (row,) = made.logprobs([(one.prompt_ids, one.token_ids, one.constraint)])
    return sum(value != 0.0 for value in row)


def _logprobs(made: Learner, given: Any) -> list[list[float]]:
    return made.logprobs([(one.prompt_ids, one.token_ids, one.constraint) for one in _steps(given)])


@pytest.mark.parametrize(
    ("game", "changes"),
    [
        ("kuhn", {}),
        ("kuhn", {"temperature": 1.7, "top_p": 0.8}),
        ("avalon", {}),
        ("avalon", {"mode": "two", "thought_tokens": 6}),
    ],
)
def test_untouched_weights_give_the_log_probabilities_of_the_sampler(
    grouped_folder: Path, game: str, changes: dict[str, Any]
) -> None:
    records = play_matches(grouped_folder, game, matches=1 if game == "avalon" else 4, **changes)
    given = [one for record in records for one in harvest(record)]
    steps = _steps(given)
    made = learner(grouped_folder)
    found = made.logprobs(
        [(one.prompt_ids, one.token_ids, one.constraint) for one in steps],
        temperature=steps[0].temperature,
        top_p=steps[0].top_p,
    )
    drawn = np.concatenate([one.logprobs for one in steps])
    assert np.abs(np.concatenate(found) - drawn).max() < 1e-3
    assert (drawn < -0.01).any() and {one.constraint is None for one in steps} == {game == "avalon", False}
    stats = made.update(given, [[1.0] * len(one.steps) for one in given])
    assert stats.values["gap"] < 1e-3 and stats.values["correction"] == pytest.approx(1.0, abs=1e-3)
    assert stats.computed < stats.prompt_tokens + stats.completion_tokens


def test_what_was_good_becomes_likelier(model_folder: Path) -> None:
    made = learner(model_folder, loss=LossSettings(), reference="none", lr=3e-3)
    prompt = (30, 31, 32)
    good, bad = _two(made)
    given = [
        trajectory(step(prompt, good, constraint=CHOICES)),
        trajectory(step(prompt, bad, constraint=CHOICES)),
    ]
    (before,) = made.probabilities([(prompt, CHOICES.choices)])
    for _ in range(5):
        stats = made.update(given, [[1.0], [-1.0]])
    (after,) = made.probabilities([(prompt, CHOICES.choices)])
    assert sum(before) == pytest.approx(1.0, abs=1e-5) and sum(after) == pytest.approx(1.0, abs=1e-5)
    assert after[0] > before[0] + 0.05 and after[1] < before[1]
    assert (stats.update, made.updates) == (5, 5)


def _two(made: Learner) -> tuple[tuple[int, ...], tuple[int, ...]]:
    spelled = {}
    for text, tokens in made.spell(CHOICES.choices):
        if text not in spelled or len(tokens) < len(spelled[text]):
            spelled[text] = tokens
    return spelled["approve"], spelled["reject"]


def test_equal_completions_are_computed_once(model_folder: Path) -> None:
    made = learner(model_folder)
    tokens = _two(made)[0]
    one = trajectory(step((30, 31), tokens, constraint=CHOICES))
    single = made.update([one], [[0.5]])
    again = learner(model_folder)
    many = again.update([one] * 50, [[0.5]] * 50)
    assert many.computed == single.computed and many.tokens == 50 * single.tokens
    assert many.values["loss"] == pytest.approx(single.values["loss"], abs=1e-6)
    assert many.values["grad_norm"] == pytest.approx(single.values["grad_norm"], rel=1e-4)


def test_without_an_advantage_nothing_is_computed_unless_it_is_held_to_something(model_folder: Path) -> None:
    made = learner(model_folder, loss=LossSettings(), reference="none")
    before = weights(made)
    given, advantages = batch(made)
    stats = made.update(given, [[0.0] * len(row) for row in advantages])
    assert stats.computed == 0 and stats.tokens > 0 and apart(before, weights(made)) == 0.0
    held = learner(model_folder)
    assert held.update(given, [[0.0] * len(row) for row in advantages]).computed > 0


def test_an_epoch_in_steps_holds_the_ratio_to_the_start(model_folder: Path) -> None:
    made = learner(model_folder, epochs=3, steps=2, lr=3e-3, loss=LossSettings(), reference="none")
    stats = made.update(*batch(made))
    assert stats.values["drift"] > 0 and stats.values["ratio"] != pytest.approx(1.0, abs=1e-4)
    again = learner(model_folder, epochs=3, steps=2, lr=3e-3, loss=LossSettings(), reference="none")
    again.update(*batch(again))
    assert apart(weights(made), weights(again)) == 0.0


@pytest.mark.parametrize("kind", ["k3", "exact"])
def test_a_heavy_divergence_holds_the_policy_to_the_reference(model_folder: Path, kind: Any) -> None:
    def moved(kl: float) -> float:
        loss = LossSettings(kl=kl, kl_kind=kind)
        made = learner(model_folder, loss=loss, lr=3e-3)
        given, advantages = batch(made)
        before = _logprobs(made, given)
        for _ in range(6):
            made.update(given, advantages)
        return float(np.abs(np.concatenate(_logprobs(made, given)) - np.concatenate(before)).mean())

    assert moved(20.0) < 0.6 * moved(0.0)


def test_the_reference_moves_when_it_is_told_to(model_folder: Path) -> None:
    made = learner(model_folder, lr=3e-3, reference="moving", reference_every=2)
    given, advantages = batch(made)
    assert made.update(given, advantages).values["kl"] == pytest.approx(0.0, abs=1e-6)
    assert made.update(given, advantages).values["kl"] > 1e-5
    assert made.update(given, advantages).values["kl"] == pytest.approx(0.0, abs=1e-6)
    made.move_reference()
    assert made.update(given, advantages).values["kl"] == pytest.approx(0.0, abs=1e-6)
    made.update(given, advantages)
    asked = [((30, 31), CHOICES.choices or ())]
    assert made.probabilities(asked, reference=True) != made.probabilities(asked)


def test_averaged_weights_lag_behind(model_folder: Path, tmp_path: Path) -> None:
    made = learner(model_folder, average=0.5)
    start = weights(made)
    made.update(*batch(made))
    assert made._average is not None
    expected = {name: (start[name] + one) / 2 for name, one in weights(made).items()}
    assert apart(made._average, expected) < 1e-6
    made.save(tmp_path / "a", averaged=True)
    loaded = Learner(model_folder, settings=settings(), adapter=tmp_path / "a")
    assert apart(weights(loaded), expected) < 1e-6
    with pytest.raises(BadLearner, match="keeps no averaged weights"):
        learner(model_folder).save(tmp_path / "b", averaged=True)


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_a_learner_that_is_loaded_goes_on_as_the_other_does(
    model_folder: Path, tmp_path: Path, kind: Any
) -> None:
    changes = {"weights": kind, "rank": 8, "average": 0.9, "epochs": 2, "steps": 2, "warmup": 5}
    made = learner(model_folder, **changes)
    given = batch(made)
    made.update(*given)
    made.save_state(tmp_path)
    other = Learner(model_folder, settings=settings(**changes), seed=99)
    other.load_state(tmp_path)
    assert (other.updates, other.seed) == (1, 0)
    for _ in range(2):
        one, two = made.update(*given), other.update(*given)
        assert one.values == two.values
    assert apart(weights(made), weights(other)) == 0.0


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_what_is_saved_plays_as_the_learner_does(model_folder: Path, tmp_path: Path, kind: Any) -> None:
    made = learner(model_folder, weights=kind, rank=8, lr=1e-2)
    made.update(*batch(made))
    store = AdapterStore(tmp_path / "adapters")
    adapter = made.publish(store, "learner")
    assert (adapter.ref, adapter.kind, adapter.base) == (
        "learner@1",
        "full" if kind == "all" else "lora",
        made.base,
    )
    store.verify(adapter)
    assert check_files(adapter.path, base=model_folder).kind == adapter.kind
    assert [path.name for path in store.root.iterdir()] == ["learner"]
    assert str(model_folder) not in "".join(
        path.read_text() for path in adapter.path.glob("*.json") if path.name != "tokenizer.json"
    )
    (record,) = play_matches(model_folder, "kuhn", matches=1, published=(adapter.ref, adapter.path))
    given = harvest(record)
    assert {one.adapter for one in given} == {"learner@1"}
    drawn = np.concatenate([one.logprobs for one in _steps(given)])
    assert np.abs(np.concatenate(_logprobs(made, given)) - drawn).max() < 1e-3
    # And another learner goes on from it.
    begun = Learner(model_folder, settings=settings(weights=kind, rank=8), adapter=adapter.path)
    assert apart(weights(begun), weights(made)) == 0.0


@pytest.mark.parametrize("wrong", ["weights", "advantage", "sampled", "step"])
def test_what_is_no_number_is_refused_and_the_last_good_state_kept(model_folder: Path, wrong: str) -> None:
    made = learner(model_folder, average=0.5, steps=2)
    given, advantages = batch(made)
    made.update(given, advantages)
    kept, state = weights(made), made._optimizer.state_dict()["state"][0]["step"].item()
    match wrong:
        case "weights":
            broken = next(iter(made.model.trained.values()))
            with torch.no_grad():
                broken.fill_(math.nan)
            kept = weights(made)
            said = "^update 2: the loss is nan; the weights before the update are kept$"
        case "advantage":
            advantages[3][0] = math.inf
            said = "^match m3, seat 0: an advantage is no finite number; nothing is learned from the batch$"
        case "sampled":
            first = given[2].steps[0]
            first = replace(first, logprobs=(math.nan, *first.logprobs[1:]))
            given[2] = replace(given[2], steps=(first, *given[2].steps[1:]))
            said = "^match m2, seat 0: a log-probability is no finite number"
        case _:
            said = "^update 2: the (loss|weights' size) is (nan|inf); the weights before the update are kept$"
            hook = made._optimizer.register_step_post_hook(lambda *_: overflow(made))
    with pytest.raises(NotFinite, match=said):
        made.update(given, advantages)
    now = weights(made)
    assert all(torch.equal(torch.nan_to_num(now[name]), torch.nan_to_num(kept[name])) for name in kept)
    assert made.updates == 1 and made._optimizer.state_dict()["state"][0]["step"].item() == state
    if wrong == "step":
        hook.remove()
        assert made.update(given, advantages).update == 2


def overflow(made: Learner) -> None:
    with torch.no_grad():
        list(made.model.trained.values())[-1].fill_(math.inf)


def test_tokens_of_another_model_are_refused_in_one_line(model_folder: Path) -> None:
    made = learner(model_folder)
    for one, said in (
        (step(tokens=(8, 4000)), "the model has 400: it was written by another model"),
        (step(prompt=(4000,)), "a prompt has tokens that the model has not"),
        (step(tokens=(300, 0), constraint=CHOICES), "is none of those that were allowed"),
    ):
        with pytest.raises(BadRollout, match=said):
            made.update([trajectory(one)], [[1.0]])
    with pytest.raises(TrainingError, match="2 advantages for 1 steps"):
        made.update([trajectory(step())], [[1.0, 2.0]])


def test_an_adapter_of_the_wrong_shape_is_refused_in_one_line(
    model_folder: Path, lora_folder: Path, tmp_path: Path
) -> None:
    wide = save_lora(save_model(tmp_path / "other", layers=3), tmp_path / "lora")
    with pytest.raises(BadAdapter, match=r"^[^\n]*it was trained on|is no part of[^\n]*$"):
        Learner(model_folder, settings=settings(weights="lora", rank=8), adapter=wide)
    with pytest.raises(BadAdapter, match=r"^[^\n]*its rank is 8, the learner's is 16$"):
        Learner(model_folder, settings=settings(weights="lora", rank=16), adapter=lora_folder)
    with pytest.raises(BadLearner, match=r"all weights were asked for, \S+ is the other kind$"):
        Learner(model_folder, settings=settings(), adapter=lora_folder)
    with pytest.raises(BadAdapter, match=r"^[^\n]*layers\.2[^\n]* is missing, in [^\n]*$"):
        Learner(tmp_path / "other", settings=settings(), adapter=model_folder)


def test_states_that_do_not_fit_are_refused_in_one_line(
    model_folder: Path, grouped_folder: Path, tmp_path: Path
) -> None:
    made = learner(model_folder)
    kept = weights(made)
    with pytest.raises(BadCheckpoint, match=r"learner.pt: cannot be read: No such file"):
        made.load_state(tmp_path)
    learner(grouped_folder).save_state(tmp_path / "grouped")
    with pytest.raises(
        BadCheckpoint, match=r"it is of grouped\S+ \(all\), the learner is of model\S+ \(all\)$"
    ):
        made.load_state(tmp_path / "grouped")
    made.save_state(tmp_path)
    state = torch.load(tmp_path / STATE, weights_only=True)
    torch.save(state | {"format": 0}, tmp_path / STATE)
    with pytest.raises(BadCheckpoint, match=r"it is of format 0, this version reads 1: begin a new run$"):
        made.load_state(tmp_path)
    (tmp_path / STATE).write_bytes(b"garbage")
    with pytest.raises(BadCheckpoint, match=r"^[^\n]*learner.pt: cannot be read: [^\n]+$"):
        made.load_state(tmp_path)
    assert apart(kept, weights(made)) == 0.0


FULL = """
import resource, sys
from pathlib import Path
from agents.errors import CheckpointFailed
from agents.policy.adapters import AdapterStore
from agents.training.checkpoint import Checkpoints
from agents.training.learner import Learner
from agents.training.settings import LearnerSettings

model, home = map(Path, sys.argv[1:])
made = Learner(model, settings=LearnerSettings(weights="all", device="cpu", threads=1))
kept, store = Checkpoints(home / "checkpoints"), AdapterStore(home / "adapters")
kept.save(1, made.save_state, {})
made.publish(store, "learner")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for attempt in (lambda: kept.save(2, made.save_state, {}), lambda: made.publish(store, "learner")):
    try:
        attempt()
    except CheckpointFailed as error:
        print(error)
made.load_state(kept.newest().path)
print(kept.newest().number, [one.ref for one in store.all()], [path.name for path in store.root.iterdir()])
"""


def test_a_full_disk_costs_neither_checkpoints_nor_versions(model_folder: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(model_folder), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    first, second, last = done.stdout.splitlines()
    assert first.startswith("checkpoint 2 in ") and first.endswith("the last one, 1, is kept")
    assert "File too large" in first and "written" in second and "File too large" in second
    assert last == "1 ['learner@1'] ['learner']"


def test_settings_that_mean_nothing_are_refused_in_one_line(model_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BadLearner, match=r"^learner reference: got 'none', but loss.kl needs one"):
        learner(model_folder, reference="none")
    with pytest.raises(BadLearner, match=r"^learner device: got 'nowhere': [^\n]+$"):
        learner(model_folder, device="nowhere")
    with pytest.raises(BadModel, match="no such folder"):
        learner(tmp_path / "none")
    made = learner(model_folder, reference="none", loss=LossSettings())
    with pytest.raises(BadLearner, match="nothing to move"):
        made.move_reference()
    for lr in (math.nan, -1.0, 100.0):
        with pytest.raises(BadLearner, match=r"^learning rate: got \S+, 0 to 10 is allowed$"):
            made.update(*batch(made), lr=lr)


def test_probabilities_are_summed_over_all_spellings(model_folder: Path) -> None:
    made = learner(model_folder)
    prompt = (40, 41, 42)
    choices = ("approve", "reject", "approve it")
    (found,) = made.probabilities([(prompt, choices)], temperature=1.5)
    assert sum(found) == pytest.approx(1.0, abs=1e-5) and min(found) > 0
    spelled = made.spell(choices)
    assert len({tokens for _, tokens in spelled}) == len(spelled) > 20
    values = made.logprobs(
        [(prompt, tokens, Constraint(choices=choices)) for _, tokens in spelled], temperature=1.5
    )
    by_hand = sum(
        math.exp(sum(row)) for (text, _), row in zip(spelled, values, strict=True) if text == "approve"
    )
    assert found[0] == pytest.approx(by_hand)
    with pytest.raises(TrainingError, match=r"^choices: 'approve reject approve[^\n]* over 20000 spellings$"):
        made.spell(("approve reject approve reject approve", "no"))


@pytest.mark.parametrize("kind", ["all", "lora"])
def test_in_half_precision_what_is_trained_stays_whole(model_folder: Path, kind: Any) -> None:
    made = learner(model_folder, weights=kind, rank=8, dtype="bfloat16", checkpointing=True)
    assert {one.dtype for one in made.model.trained.values()} == {torch.float32}
    before = weights(made)
    given = batch(made)
    stats = made.update(*given)
    assert all(math.isfinite(value) for value in stats.values.values()) and apart(before, weights(made)) > 0
    exact = _logprobs(learner(model_folder), given[0])
    near = _logprobs(learner(model_folder, weights=kind, rank=8, dtype="bfloat16"), given[0])
    assert 0 < np.abs(np.concatenate(exact) - np.concatenate(near)).mean() < 0.1
