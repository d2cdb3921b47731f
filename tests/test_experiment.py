"""Experiments: presets, runs, records, tables, pictures and the command."""

import dataclasses
import json
from pathlib import Path

import click.testing
import keras
import numpy as np
import pytest

from taylorformer import Taylorformer
from taylorformer.cli import cli, main
from taylorformer.data_wrangler.gaussian_process_tasks import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.task_set import TaskSet
from taylorformer.training_and_evaluation import experiment as experiment_module
from taylorformer.training_and_evaluation.consistency import Consistency, measure_consistency
from taylorformer.training_and_evaluation.experiment import (
    ExperimentSettings,
    make_network,
    make_optimizer,
    run_experiment,
    score_tasks,
)
from taylorformer.training_and_evaluation.experiment_pictures import write_curves, write_pictures
from taylorformer.training_and_evaluation.experiment_presets import (
    ABLATION,
    NETWORKS,
    TASKS,
    NetworkPreset,
)
from taylorformer.training_and_evaluation.experiment_table import (
    consistency_rows,
    markdown_table,
    read_records,
    table_rows,
)

# Data sets stay graphs where everything else runs op by op, and TensorFlow says so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config")

RESULTS = Path(__file__).resolve().parents[1] / "results"
_TINY = {
    "taylorformer": {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1, "dropout": 0.0},
    "tnp": {"num_heads": 2, "width": 8, "num_layers": 1, "feed_forward": 8},
    "anp": {"width": 8, "num_heads": 2, "latent_dim": 4, "log_prob_latents": 5},
    "np": {"width": 8, "latent_dim": 4, "log_prob_latents": 5},
}


@pytest.fixture
def tiny(monkeypatch, eagerly):
    """Makes all networks of experiments tiny, and trains them eagerly."""
    for name, settings in _TINY.items():
        monkeypatch.setitem(NETWORKS, name, dataclasses.replace(NETWORKS[name], settings=settings))


def _settings(task="gp-rbf", architecture="taylorformer", **given):
    given = {
        "iterations": 4,
        "batch_size": 2,
        "validate_every": 2,
        "validation_sequences": 3,
        "test_sequences": 3,
        "learning_rate": 1e-3,
        **given,
    }
    return ExperimentSettings.of(task, architecture, **given)


def test_presets_are_those_of_the_paper():
    settings = ExperimentSettings.of("gp-matern")
    assert (settings.iterations, settings.batch_size, settings.learning_rate) == (250_000, 32, 1e-4)
    assert settings.target_permutations == 1
    emnist = ExperimentSettings.of("emnist", "tnp")
    assert (emnist.iterations, emnist.batch_size) == (71_000, 64)
    assert make_network(emnist).min_scale == 0.05
    celeba = ExperimentSettings.of("celeba", "np", iterations=7)
    assert (celeba.iterations, celeba.batch_size) == (7, 64)


# The formulas are in the tests of the models.
@pytest.mark.parametrize(
    ("task", "architecture", "parameters"),
    [
        ("gp-rbf", "taylorformer", 92_318),
        ("gp-rbf", "tnp", 222_082),
        ("gp-rbf", "anp", 281_986),
        ("gp-rbf", "np", 199_170),
        ("emnist", "taylorformer", 108_420),
        ("emnist", "tnp", 222_146),
        ("emnist", "anp", 365_058),
        ("emnist", "np", 249_090),
        ("celeba", "taylorformer", 111_912),
        ("celeba", "tnp", 222_790),
        ("celeba", "anp", 399_110),
        ("celeba", "np", 316_166),
    ],
)
def test_parameters_of_the_presets(task, architecture, parameters):
    assert _count(make_network(ExperimentSettings.of(task, architecture))) == parameters


def _count(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


def test_the_networks_of_the_ablation_have_equally_many_parameters():
    models = {name: make_network(ExperimentSettings.of("gp-rbf", name)) for name in ABLATION}
    counts = {name: _count(model) for name, model in models.items()}
    assert len(counts) == 4
    assert max(counts.values()) <= 1.02 * min(counts.values()), counts
    assert counts["ablation-both"] == 92_318  # as the Taylorformer
    kinds = {
        (tuple(model.towers), model.taylor_order, model.feature_order) for model in models.values()
    }
    assert kinds == {
        (("xy",), None, 0),
        (("x", "xy"), None, 0),
        (("xy",), 0, 1),
        (("x", "xy"), 0, 1),
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "gp-cubic"}, "`task` must be one of 'gp-rbf'.*Received: task='gp-cubic'"),
        ({"architecture": "cnp"}, "`architecture` must be one of"),
        ({"iterations": 0}, "`iterations` must be .*Received: iterations=0"),
        ({"learning_rate": 0}, "`learning_rate`"),
        ({"schedule": "linear"}, "`schedule` must be one of"),
        ({"target_permutations": -1}, "`target_permutations`"),
        ({"test_sequences": 0}, "`test_sequences`"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ValueError, match=message):
        _settings(**given)


@pytest.mark.parametrize("architecture", _TINY)
def test_a_run_is_put_on_record(tiny, tmp_path, architecture):
    settings = _settings(architecture=architecture)
    run = run_experiment(settings, tmp_path, show_progress=False)
    record = json.loads((tmp_path / "gp-rbf" / f"{architecture}-seed-0.json").read_text())
    assert record == run.record
    latent = architecture in ("np", "anp")
    scores = record["scores"]["test"]
    way = "joint" if latent else "teacher_forced"
    assert record["score"] == way
    assert ("marginal_log_likelihood" in scores) == latent
    own = run.scores["test"]["log_likelihood"]
    found = scores[f"{way}_log_likelihood"]
    assert found["mean"] == pytest.approx(own.mean())
    assert found["standard_error"] == pytest.approx(own.std(ddof=1) / 3**0.5)
    assert scores["below_ceiling"]["mean"] == pytest.approx(
        scores["ceiling"]["mean"] - found["mean"]
    )
    assert scores["ceiling"]["mean"] <= scores["exact_log_likelihood"]["mean"] + 1e-9
    assert scores["ceiling"]["min_scale"] == (0.1 if latent else 1e-3)
    assert [row["step"] for row in record["curve"]] == [2, 4]
    assert record["iterations"] == 4
    assert record["best_iteration"] in (2, 4)
    assert record["seconds"]["training"] > 0
    assert record["command"] == settings.command
    assert scores["paper_log_likelihood"]["mean"] == TASKS["gp-rbf"].paper["test"][architecture][0]
    saved = keras.models.load_model(tmp_path / "gp-rbf" / f"{architecture}-seed-0" / "model.keras")
    again = score_tasks(saved, run.data.test["test"], batch_size=2)
    np.testing.assert_allclose(again["log_likelihood"], own, rtol=1e-5, atol=1e-5)


def test_scores_follow_from_log_prob(tiny):
    model = make_network(_settings())
    model.compile(run_eagerly=True)
    tasks = held_out_gaussian_process_tasks("rbf", 5, seed=3, num_points=20, num_context=(3, 12))
    scores = score_tasks(model, tasks, batch_size=2)
    for row in range(5):
        inputs, y_target = tasks.batch([row])
        expected = float(model.log_prob(inputs, y_target)[0]) / tasks.num_target[row]
        assert scores["log_likelihood"][row] == pytest.approx(expected, rel=1e-4, abs=1e-5)
        mean = model({**inputs, "y_target": y_target})["mean"]
        assert scores["squared_error"][row] == pytest.approx(
            float(np.mean((mean - y_target) ** 2)), rel=1e-4
        )


def test_a_stopped_run_goes_on_to_the_same_weights(tiny, tmp_path):
    settings = _settings(architecture="np", iterations=6, schedule="cosine")

    class Stop(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, tmp_path / "a", show_progress=False, callbacks=[Stop()])
    stopped = run_experiment(settings, tmp_path / "a", resume=True, show_progress=False)
    straight = run_experiment(settings, tmp_path / "b", show_progress=False)
    assert stopped.record["curve"] == straight.record["curve"]
    for one, other in zip(stopped.model.weights, straight.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    others = dataclasses.replace(settings, learning_rate=2e-3)
    with pytest.raises(ValueError, match="training can only go on with the data and settings"):
        run_experiment(others, tmp_path / "a", resume=True, show_progress=False)


def test_images_of_a_run(tiny, tmp_path):
    settings = _settings("digits", "np")
    run = run_experiment(settings, tmp_path, show_progress=False)
    scores = run.record["scores"]["test"]
    assert "ceiling" not in scores
    assert "paper_log_likelihood" not in scores
    (picture,) = write_pictures(run, tmp_path / "digits" / "np-seed-0")
    assert picture.name == "np-seed-0-images.png"
    assert picture.stat().st_size > 10_000


def test_the_schedule_falls_to_zero():
    optimizer = make_optimizer(_settings(schedule="cosine", iterations=10))
    rate = optimizer._learning_rate
    assert float(rate(0)) == pytest.approx(1e-3)
    assert float(rate(10)) == pytest.approx(0, abs=1e-9)
    assert optimizer.global_clipnorm == 10.0


class _Constructed(keras.Model):
    """Scores that are known: the average over the orders of place times y."""

    def teacher_forced(self, inputs, y_target):
        mask = inputs["target_mask"]
        places = np.arange(1, mask.shape[1] + 1)
        return {"log_prob": np.sum(places * y_target[..., 0], axis=1, where=mask)}


def test_consistency_of_known_scores():
    """log p = sum of place x y: its deviation over orders follows from the values of y."""
    x = np.arange(12.0).reshape(1, 12, 1).repeat(3, 0)
    y = np.zeros([3, 12, 1])
    y[0, 2:] = 1.0  # all targets alike: no order matters
    y[1, 2] = 1.0  # one target of ten: its place is uniform on 1..10
    y[2, 2] = 1.0  # one target of five
    tasks = TaskSet(x, y, num_context=[2, 2, 2], num_target=[10, 10, 5])
    found = measure_consistency(_Constructed(), tasks, num_orders=2000, batch_size=2)
    assert found.log_likelihoods.shape == (2000, 3)
    uniform = [np.sqrt((n * n - 1) / 12) / n for n in (10, 5)]
    assert found.deviations[0] == 0
    np.testing.assert_allclose(found.deviations[1:], uniform, rtol=0.05)
    alone = measure_consistency(_Constructed(), tasks, num_orders=2000, batch_size=3)
    np.testing.assert_array_equal(alone.log_likelihoods, found.log_likelihoods)


def test_consistency_is_summed_up():
    scores = np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 2.0]])
    summary = Consistency(scores).summary()
    assert (summary["orders"], summary["sequences"]) == (2, 3)
    assert summary["mean"] == pytest.approx(1 / 3)
    np.testing.assert_allclose(summary["interval_95"], np.quantile([0, 1, 0], [0.025, 0.975]))
    with pytest.raises(ValueError, match=r"`num_orders`.*Received: num_orders=1"):
        measure_consistency(_Constructed(), None, num_orders=1)


def test_latent_models_are_consistent(tiny):
    model = make_network(_settings(architecture="np"))
    model.compile(run_eagerly=True)
    tasks = held_out_gaussian_process_tasks("rbf", 3, seed=3, num_points=20, num_context=(3, 12))
    assert measure_consistency(model, tasks, 3).deviations.max() < 1e-5


def _record(architecture="tnp", seed=0, value=1.0, **more):
    return {
        "format": 1,
        "settings": {
            "task": "gp-rbf",
            "architecture": architecture,
            "seed": seed,
            "target_permutations": more.pop("target_permutations", 1),
            "iterations": 10,
        },
        "score": "teacher_forced",
        "iterations": 10,
        "parameters": 1234,
        "seconds": {"training": 120.0},
        "curve": [{"step": step, "validation_nll": 1.0 / step} for step in (1, 5, 10)],
        "scores": {
            "test": {
                "teacher_forced_log_likelihood": {"mean": value, "standard_error": 0.01},
                "ceiling": {"mean": 5.0},
                "below_ceiling": {"mean": 5.0 - value, "standard_error": 0.02},
                "paper_log_likelihood": {"mean": 3.5, "standard_deviation": 0.05},
            }
        },
        **more,
    }


def test_the_table():
    records = [
        _record(seed=0, value=1.0),
        _record(seed=1, value=2.0),
        _record("taylorformer", value=3.0, target_permutations=5),
    ]
    rows = table_rows(records)
    assert rows[0]["log-likelihood"] == f"1.500 ± {np.std([1, 2], ddof=1):.3f}"
    assert (rows[0]["runs"], rows[0]["below it"], rows[0]["paper"]) == (
        "2",
        "3.500 ± 0.020",
        "3.50 ± 0.05",
    )
    assert rows[1]["network"] == "taylorformer, 5 permutations"
    assert rows[1]["log-likelihood"] == "3.000 ± 0.010"
    lines = markdown_table(rows).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    measured = _record(
        consistency={"orders": 40, "sequences": 9, "mean": 0.5, "interval_95": [0.1, 0.9]}
    )
    assert consistency_rows([*records, measured]) == [
        "- gp-rbf, tnp, seed 0, 1 permutations in training: standard deviation over 40 orders "
        "0.500, 95 % of 9 sequences in [0.100, 0.900]"
    ]


def test_records_are_read_and_drawn(tmp_path):
    for number, record in enumerate([_record("np"), _record("taylorformer"), _record("tnp")]):
        (tmp_path / f"{number}.json").write_text(json.dumps(record))
    order = [record["settings"]["architecture"] for record in read_records(tmp_path)]
    assert order == ["taylorformer", "tnp", "np"]
    assert write_curves(tmp_path).stat().st_size > 10_000
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"records of experiments only. Received: .*other\.json"):
        read_records(tmp_path)
    (tmp_path / "other.json").write_text(json.dumps({**_record(), "format": 2}))
    with pytest.raises(ValueError, match="of the format 2"):
        read_records(tmp_path)
    with pytest.raises(FileNotFoundError, match="no record"):
        read_records(tmp_path / "nothing")


def test_the_command(tiny, tmp_path):
    words = (
        "experiment gp-rbf --architecture np --iterations 4 --batch-size 2 --validate-every 2 "
        f"--validation-sequences 3 --test-sequences 3 --consistency --output {tmp_path}"
    ).split()
    runner = click.testing.CliRunner()
    done = runner.invoke(cli, words)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "gp-rbf"
    for ending in (".json", "-samples.png", "-consistency.png"):
        assert (folder / f"np-seed-0{ending}").stat().st_size > 500
    assert "joint log-likelihood" in done.output
    table = (tmp_path / "table.md").read_text()
    assert table in done.output
    assert "| gp-rbf   | np " in table
    assert "standard deviation over 40 orders 0.000" in table
    again = runner.invoke(cli, [*words, "--resume"])
    assert again.exit_code == 0
    assert "np-seed-0.json is there already" in again.output
    shown = runner.invoke(cli, ["experiment", "--table", "--output", str(tmp_path)])
    assert shown.output.strip() == table.strip()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["experiment"], "TASK is missing"),
        (["experiment", "gp-cubic"], "`task` must be one of"),
        (["experiment", "gp-rbf", "--architecture", "x"], "`architecture` must be one of"),
        (["experiment", "gp-rbf", "--resume", "--overwrite"], "exclude each other"),
        (["experiment", "gp-rbf", "--output", "OUT"], "np-seed-0.json is there; --resume leaves"),
        (
            ["experiment", "gp-rbf", "--output", "OUT", "--resume"],
            "was made with other settings",
        ),
        (["experiment", "gp-rbf", "--output", "OUT", "--seed", "1"], "training.npz was stopped"),
        (["experiment", "--table", "--output", "EMPTY"], "no record of an experiment"),
    ],
)
def test_bad_commands(capsys, tmp_path, words, message):
    folder = tmp_path / "out" / "gp-rbf"
    (folder / "np-seed-1").mkdir(parents=True)
    (folder / "np-seed-0.json").write_text("{}")
    (folder / "np-seed-1" / "training.npz").write_bytes(b"")
    places = {"OUT": str(tmp_path / "out"), "EMPTY": str(tmp_path)}
    words = [places.get(word, word) for word in words]
    if "OUT" not in words and "--output" in words and str(tmp_path / "out") in words:
        words += ["--architecture", "np"]
    if "EMPTY" in words or str(tmp_path) in words:
        (folder / "np-seed-0.json").unlink()
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_the_list(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["experiment", "--list"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for name in (*TASKS, *NETWORKS):
        assert f"  {name} " in shown


def test_presets_name_models_that_exist():
    for preset in NETWORKS.values():
        assert isinstance(preset, NetworkPreset)
        assert preset.model in experiment_module._MODELS
    assert experiment_module._MODELS["Taylorformer"] is Taylorformer


@pytest.mark.skipif(not RESULTS.exists(), reason="this checkout has no recorded runs")
def test_no_recorded_run_is_above_the_ceiling():
    """A model above the ceiling has seen what it predicts."""
    checked = 0
    for record in read_records(RESULTS):
        for scores in record["scores"].values():
            if "below_ceiling" in scores:
                below = scores["below_ceiling"]
                assert below["mean"] > -3 * below["standard_error"], record["command"]
                checked += 1
    assert checked > 0
