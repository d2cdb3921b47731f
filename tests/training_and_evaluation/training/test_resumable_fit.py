"""Training that is stopped, or killed, resumes as if it had not been."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import keras
import numpy as np
import pytest
import tensorflow as tf
from forecasting import TINY, tiny_forecaster, wave_table

from taylorformer import NeuralProcess
from taylorformer.data_wrangler.tables.files import load_mauna_loa_co2
from taylorformer.training_and_evaluation.forecasting.forecaster import Forecaster
from taylorformer.training_and_evaluation.training.plan import TrainingPlan
from taylorformer.training_and_evaluation.training.progress import TrainingBar
from taylorformer.training_and_evaluation.training.resumable_fit import resumable_fit

PRESETS = {
    schedule: dataclasses.replace(TINY, max_steps=6, schedule=schedule, dropout=0.2)
    for schedule in ("constant", "cosine")
}


class StopAt(keras.callbacks.Callback):
    """Does what Ctrl-C does, in the middle of a batch that is counted from the start."""

    def __init__(self, batch):
        super().__init__()
        self.left = batch

    def on_train_batch_begin(self, batch, logs=None):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


@pytest.fixture(scope="module")
def table():
    return wave_table()


@pytest.fixture(scope="module")
def uninterrupted(table):
    return tiny_forecaster(preset=PRESETS["cosine"]).fit(table)


def assert_same(first, second):
    for ours, theirs in zip(first.model_.get_weights(), second.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert first.history_.equals(second.history_)


def test_stopped_training_resumes_to_the_same_weights(uninterrupted, table, tmp_path):
    options = {"preset": uninterrupted.preset}
    checkpoint = tmp_path / "folder" / "training.npz"
    for batch in (1, 3, 0):
        forecaster = tiny_forecaster(**options)
        with pytest.raises(KeyboardInterrupt):
            forecaster.fit(table, checkpoint=checkpoint, resume=True, callbacks=[StopAt(batch)])
    done = tiny_forecaster(**options).fit(table, checkpoint=checkpoint, resume=True)
    assert_same(done, uninterrupted)
    # What is done is not done again.
    again = tiny_forecaster(**options)
    again.fit(table, checkpoint=checkpoint, resume=True, callbacks=[StopAt(0)])
    assert_same(again, uninterrupted)
    assert [path.name for path in checkpoint.parent.iterdir()] == ["training.npz"]


@pytest.mark.slow
def test_after_a_stop_the_best_weights_so_far_can_be_used(table):
    forecaster = tiny_forecaster(preset=PRESETS["constant"])
    with pytest.raises(KeyboardInterrupt):
        forecaster.fit(table, callbacks=[StopAt(3)])
    assert list(forecaster.history_["step"]) == [2]
    assert np.isfinite(forecaster.forecast(table, num_samples=3).samples).all()
    early = tiny_forecaster(preset=PRESETS["constant"])
    with pytest.raises(KeyboardInterrupt):
        early.fit(table, callbacks=[StopAt(1)])
    assert not hasattr(early, "model_")


@pytest.mark.slow
def test_more_steps_are_the_same_training_continued(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    options = {"preset": PRESETS["constant"]}
    tiny_forecaster(max_steps=4, **options).fit(table, checkpoint=checkpoint)
    longer = tiny_forecaster(**options).fit(table, checkpoint=checkpoint, resume=True)
    assert_same(longer, tiny_forecaster(**options).fit(table))


def test_fewer_steps_than_are_done_are_refused(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    tiny_forecaster().fit(table, checkpoint=checkpoint)
    with pytest.raises(ValueError, match=r"at least the 4 steps of .*training\.npz"):
        tiny_forecaster(max_steps=2).fit(table, checkpoint=checkpoint, resume=True)


@pytest.mark.slow
def test_without_resume_training_starts_anew(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    first = tiny_forecaster().fit(table, checkpoint=checkpoint)
    assert_same(tiny_forecaster().fit(table, checkpoint=checkpoint), first)
    assert len(first.history_) == 2


def test_training_resumes_with_the_same_data_and_settings_only(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    tiny_forecaster().fit(table, checkpoint=checkpoint)
    before = checkpoint.read_bytes()
    changed = table.assign(y=table["y"] * 2)
    test_part = table.copy()
    test_part.loc[80:, "y"] = 0.0
    for other, data in (
        (tiny_forecaster(), changed),
        (tiny_forecaster(seed=1), table),
        (tiny_forecaster(horizon=3), table),
        # Epochs would have another length.
        (tiny_forecaster(max_steps=1), table),
    ):
        with pytest.raises(ValueError, match="only resume with the data and settings it began"):
            other.fit(data, checkpoint=checkpoint, resume=True)
    assert checkpoint.read_bytes() == before
    tiny_forecaster().fit(test_part, checkpoint=checkpoint, resume=True)


def test_a_file_that_is_no_checkpoint(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    tiny_forecaster(max_steps=1).fit(table, checkpoint=checkpoint)
    for content in (b"nothing", b"", checkpoint.read_bytes()[:-100]):
        checkpoint.write_bytes(content)
        with pytest.raises(ValueError, match=r"a file that training wrote\. Received"):
            tiny_forecaster().fit(table, checkpoint=checkpoint, resume=True)
    np.savez(checkpoint, meta=np.array(json.dumps({"format": 9, "versions": {}})))
    with pytest.raises(ValueError, match="must have the format 1"):
        tiny_forecaster().fit(table, checkpoint=checkpoint, resume=True)


def test_other_versions_are_named(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    tiny_forecaster().fit(table, checkpoint=checkpoint)
    with np.load(checkpoint) as file:
        content = dict(file)
    meta = json.loads(str(content["meta"]))
    meta["versions"]["keras"] = "3.0"
    np.savez(checkpoint, **{**content, "meta": np.array(json.dumps(meta))})
    with pytest.warns(UserWarning, match=r"began with keras 3\.0 and resumes with other versions"):
        tiny_forecaster().fit(table, checkpoint=checkpoint, resume=True)


def test_training_stops_early_and_keeps_the_best_weights(table):
    preset = dataclasses.replace(
        PRESETS["constant"], max_steps=20, steps_per_epoch=1, patience=2, learning_rate=0.5
    )
    forecaster = tiny_forecaster(preset=preset).fit(table)
    history = forecaster.history_
    best = int(history["validation_teacher_forced_nll"].idxmin())
    assert len(history) == best + 1 + 2 < 20
    assert forecaster.report_["best_step"] == history["step"].iloc[best]
    result = forecaster.backtest(table, part="validation", num_samples=0, step=1, units="scaled")
    score = result.scores.set_index("line").loc["taylorformer", "teacher_forced_nll"]
    assert score == pytest.approx(history["validation_teacher_forced_nll"].min(), rel=1e-4)


# Steps that do not divide into epochs.


class CountSteps(keras.callbacks.Callback):
    """Counts training steps and evaluations."""

    def __init__(self):
        super().__init__()
        self.steps = self.evaluations = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1

    def on_test_begin(self, logs=None):
        self.evaluations += 1


@pytest.mark.parametrize(
    "max_steps",
    [pytest.param(steps, marks=[pytest.mark.slow] * (steps < 3)) for steps in (1, 2, 3, 5)],
)
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_training_has_as_many_steps_as_were_asked_for(table, schedule, max_steps):
    counter = CountSteps()
    forecaster = tiny_forecaster(preset=PRESETS[schedule], max_steps=max_steps)
    forecaster.fit(table, callbacks=[counter])
    assert counter.steps == max_steps == forecaster.report_["training_steps"]
    steps = [*range(2, max_steps, 2), max_steps]
    assert list(forecaster.history_["step"]) == steps and counter.evaluations == len(steps)
    assert forecaster.report_["best_step"] in steps
    assert int(forecaster.model_.optimizer.iterations) == max_steps


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_training_with_a_shorter_last_epoch_resumes_to_the_same_weights(table, schedule, tmp_path):
    options = {"preset": PRESETS[schedule], "max_steps": 5}
    whole = tiny_forecaster(**options).fit(table)
    checkpoint = tmp_path / "training.npz"
    for batch in (3, 2, 0):
        with pytest.raises(KeyboardInterrupt):
            tiny_forecaster(**options).fit(
                table, checkpoint=checkpoint, resume=True, callbacks=[StopAt(batch)]
            )
    assert_same(tiny_forecaster(**options).fit(table, checkpoint=checkpoint, resume=True), whole)


@pytest.mark.slow
def test_a_training_whose_last_epoch_was_shorter_can_be_made_longer(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    # Without validation the weights kept are the last ones, however often they are looked at.
    options = {"preset": PRESETS["constant"], "fractions": (0.8, 0.0, 0.2)}
    tiny_forecaster(max_steps=3, **options).fit(table, checkpoint=checkpoint)
    longer = tiny_forecaster(**options).fit(table, checkpoint=checkpoint, resume=True)
    assert list(longer.history_["step"]) == [2, 3, 4, 6]
    whole = tiny_forecaster(**options).fit(table)
    for ours, theirs in zip(longer.model_.get_weights(), whole.model_.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_callback_that_stops_the_training_stops_the_last_epoch_too(table):
    class Enough(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    preset = dataclasses.replace(PRESETS["constant"], max_steps=5)
    forecaster = tiny_forecaster(preset=preset).fit(table, callbacks=[Enough()])
    assert forecaster.report_["training_steps"] == 4


def test_a_schedule_that_ended_at_whole_epochs_is_another_training(table, tmp_path, monkeypatch):
    """Earlier versions rounded 5 steps up to 6, in the schedule, too."""
    checkpoint = tmp_path / "training.npz"
    options = {"preset": PRESETS["cosine"], "max_steps": 5}
    with monkeypatch.context() as patch:
        patch.setattr(TrainingPlan, "total_steps", 6)
        patch.setattr(json, "dumps", lambda value, write=json.dumps: write(without(value)))
        with pytest.raises(KeyboardInterrupt):
            tiny_forecaster(**options).fit(table, checkpoint=checkpoint, callbacks=[StopAt(3)])
    with pytest.raises(ValueError, match="only resume with the data and settings it began"):
        tiny_forecaster(**options).fit(table, checkpoint=checkpoint, resume=True)


def without(value):
    """Leaves out of the content of a fingerprint what earlier versions did not have."""
    if isinstance(value, list):
        return [
            {k: v for k, v in one.items() if k != "whole_epochs"} if isinstance(one, dict) else one
            for one in value
        ]
    return value


# What scores are called, and what the bar shows.


def fit_latent(tmp_path, steps, progress=None, checkpoint="np.npz"):
    model = NeuralProcess(width=4, latent_dim=2, num_latents=2, seed=0)
    plan = TrainingPlan(2, 1e-3, "constant", steps, 2)
    model.compile(plan.make_optimizer(), run_eagerly=True)
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(1, 6, 1).repeat(2, axis=0)
    batch = {"x_context": x[:, :4], "y_context": x[:, :4], "x_target": x[:, 4:]}, x[:, 4:]
    data = tf.data.Dataset.from_tensors(batch)
    return resumable_fit(
        model, lambda first: data.repeat(), data, plan,
        checkpoint=tmp_path / checkpoint, resume=True, progress=progress,
    )  # fmt: skip


def test_scores_of_latent_models_are_joint(tmp_path):
    progress = fit_latent(tmp_path, 2)
    names = {"step", "joint_nll", "mean_latent_mse"}
    names |= {"validation_joint_nll", "validation_mean_latent_mse"}
    assert set(progress.history[0]) == names
    # Earlier versions called them as those of other models.
    with np.load(tmp_path / "np.npz") as file:
        content = dict(file)
    meta = json.loads(str(content["meta"]))
    text = json.dumps(meta["history"]).replace("joint_nll", "teacher_forced_nll")
    meta["history"] = json.loads(text.replace("mean_latent_mse", "teacher_forced_mse"))
    assert "validation_teacher_forced_nll" in meta["history"][0]
    np.savez(tmp_path / "old.npz", **{**content, "meta": np.array(json.dumps(meta))})
    resumed = fit_latent(tmp_path, 4, checkpoint="old.npz")
    assert [set(row) for row in resumed.history] == [names, names]
    assert resumed.history == fit_latent(tmp_path, 4).history
    assert resumed.history[0] == progress.history[0]


class Shown:
    """Remembers what a bar shows."""

    def __init__(self):
        self.calls = []

    def __call__(self, done, total, note=""):
        self.calls.append((done, total, note))


@pytest.mark.slow
def test_the_bar_shows_all_steps_and_the_best_score_after_a_resume(table, tmp_path):
    checkpoint = tmp_path / "training.npz"
    preset = dataclasses.replace(PRESETS["constant"], max_steps=5, learning_rate=0.5)
    shown = Shown()
    whole = tiny_forecaster(preset=preset)
    whole.fit(table, checkpoint=checkpoint, callbacks=[TrainingBar(shown)])
    dones, totals, notes = zip(*shown.calls, strict=True)
    assert dones == (0, 1, 2, 2, 3, 4, 4, 5) and set(totals) == {5}
    scores = whole.history_["validation_teacher_forced_nll"]
    assert notes[-1].endswith(f"best {scores.min():.3f}")
    assert notes[0].startswith("compiling") and not notes[-2].startswith("compiling")

    # Later scores are worse: the best one is from before the stop.
    longer = dataclasses.replace(preset, max_steps=7)
    shown = Shown()
    after = tiny_forecaster(preset=longer)
    after.fit(table, checkpoint=checkpoint, resume=True, callbacks=[TrainingBar(shown)])
    dones, totals, notes = zip(*shown.calls, strict=True)
    assert dones[0] == 5 and dones[-1] == 7 and set(totals) == {7}
    best = after.history_["validation_teacher_forced_nll"].min()
    assert notes[-1].endswith(f"best {best:.3f}")
    assert after.history_["validation_teacher_forced_nll"].idxmin() < 3


def test_the_bar_shows_the_score_that_chooses_the_weights():
    shown = Shown()
    bar = TrainingBar(shown)
    bar.set_params({"steps": 2, "epochs": 2})
    bar.set_model(keras.Model())
    bar.start_from(0, 4, 0.11, "validation_free_running_crps")
    for epoch, score in enumerate((0.1086, 0.2)):
        logs = {"nll": 0.5, "val_nll": -3.0, "validation_free_running_crps": score}
        bar.on_epoch_end(epoch, logs)
    notes = [note for *_, note in shown.calls]
    assert notes == [
        "nll 0.500, validation free running crps 0.109, best 0.109",
        "nll 0.500, validation free running crps 0.200, best 0.109",
    ]


# Kill -9, with the command line and compiled steps.

COMMAND = (
    *(sys.executable, "-m", "taylorformer", "fit", "mauna_loa_co2", "--target", "co2"),
    *("--context-length", "12", "--horizon", "6", "--max-steps", "900", "--seed", "5"),
    *("--start", "none"),
)


def start(folder, *options):
    return subprocess.Popen(
        [*COMMAND, "--model", str(folder), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A process in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_change(path, before):
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_mtime_ns != before:
            return path.stat().st_mtime_ns
        time.sleep(0.02)
    raise TimeoutError(str(path))


@pytest.mark.slow
def test_killed_five_times_training_ends_with_the_same_weights(tmp_path, record_property):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = start(whole)
    first = wait_for_change(whole / "training.npz", None)
    _, text = process.communicate()
    assert process.returncode == 0, text
    seconds = ((whole / "training.npz").stat().st_mtime_ns - first) / 1e9
    moments = np.random.default_rng(0).uniform(0, 0.12 * seconds, 5)
    killed_at, before = [], None
    for number, moment in enumerate(moments):
        process = start(broken, *(["--resume"] if number else []))
        before = wait_for_change(broken / "training.npz", before)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not (broken / "forecaster.json").exists()
        before = (broken / "training.npz").stat().st_mtime_ns
        with np.load(broken / "training.npz") as file:
            killed_at.append(json.loads(str(file["meta"]))["epoch"])
    record_property("epochs at the five kills", str(killed_at))
    process = start(broken, "--resume")
    _, text = process.communicate()
    assert process.returncode == 0, text
    assert killed_at == sorted(set(killed_at)) and killed_at[-1] < 18
    assert_same(Forecaster.load(broken), Forecaster.load(whole))
    table = load_mauna_loa_co2().to_frame()
    ours, theirs = (Forecaster.load(f).forecast(table, num_samples=3) for f in (broken, whole))
    np.testing.assert_array_equal(ours.samples, theirs.samples)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_says_how_to_resume(tmp_path, sign):
    process = start(tmp_path / "model")
    wait_for_change(tmp_path / "model" / "training.npz", None)
    process.send_signal(sign)
    _, text = process.communicate()
    assert process.returncode == 130
    assert text.splitlines()[-1] == "Stopped. The same command with --resume continues it."
    assert os.listdir(tmp_path / "model") == ["training.npz"]
