"""Experiments: presets, runs, records, tables, pictures and the command."""

import dataclasses
import json
import shlex
from pathlib import Path

import click.testing
import keras
import numpy as np
import pytest

from taylorformer import NeuralProcess
from taylorformer.cli import cli, main
from taylorformer.commands import experiment as experiment_command
from taylorformer.data_wrangler.tasks.gaussian_process import held_out_gaussian_process_tasks
from taylorformer.data_wrangler.tasks.image_set import load_images
from taylorformer.data_wrangler.tasks.images import whole_image_tasks
from taylorformer.data_wrangler.tasks.task_set import TaskSet
from taylorformer.training_and_evaluation.experiments.consistency import (
    Consistency,
    measure_consistency,
)
from taylorformer.training_and_evaluation.experiments.data import load_task
from taylorformer.training_and_evaluation.experiments.pictures import (
    plot_completions,
    plot_consistency,
    plot_validation_curves,
    write_pictures,
)
from taylorformer.training_and_evaluation.experiments.presets import ABLATION, MODEL_PRESETS, TASKS
from taylorformer.training_and_evaluation.experiments.recipes import RECIPES
from taylorformer.training_and_evaluation.experiments.record import read_record, read_records
from taylorformer.training_and_evaluation.experiments.run import make_model, run_experiment
from taylorformer.training_and_evaluation.experiments.scores import mean_and_error, score_tasks
from taylorformer.training_and_evaluation.experiments.settings import ExperimentSettings
from taylorformer.training_and_evaluation.experiments.table import (
    consistency_rows,
    markdown_table,
    table_rows,
)
from taylorformer.training_and_evaluation.model_classes import MODELS

# Data sets stay graphs where everything else runs op by op, and TensorFlow says so.
pytestmark = pytest.mark.filterwarnings("ignore:Even though the `tf.config")

RESULTS = Path(__file__).resolve().parents[3] / "results"
_TINY = {
    "taylorformer": {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 1, "dropout": 0.0},
    "tnp": {"num_heads": 2, "width": 8, "num_layers": 1, "feed_forward": 8},
    "anp": {"width": 8, "num_heads": 2, "latent_dim": 4, "log_prob_latents": 5},
    "np": {"width": 8, "latent_dim": 4, "log_prob_latents": 5},
}


@pytest.fixture
def tiny(monkeypatch, eagerly):
    """Makes all models of experiments tiny, and trains them eagerly."""
    for name, settings in _TINY.items():
        monkeypatch.setitem(
            MODEL_PRESETS, name, dataclasses.replace(MODEL_PRESETS[name], settings=settings)
        )


def _settings(task="gp-rbf", preset="taylorformer", **given):
    given = {
        "iterations": 4,
        "batch_size": 2,
        "validate_every": 2,
        "validation_sequences": 3,
        "test_sequences": 3,
        "learning_rate": 1e-3,
        **given,
    }
    return ExperimentSettings.of(task, preset, **given)


def test_presets_are_those_of_the_paper():
    settings = ExperimentSettings.of("gp-matern")
    assert (settings.iterations, settings.batch_size, settings.learning_rate) == (250_000, 32, 1e-4)
    assert settings.target_permutations == 1
    emnist = ExperimentSettings.of("emnist", "tnp")
    assert (emnist.iterations, emnist.batch_size) == (71_000, 64)
    assert make_model(emnist).min_scale == 0.05
    celeba = ExperimentSettings.of("celeba", "np", iterations=7)
    assert (celeba.iterations, celeba.batch_size) == (7, 64)


# The formulas are in the tests of the models.
@pytest.mark.parametrize(
    ("task", "preset", "parameters"),
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
def test_parameters_of_the_presets(task, preset, parameters):
    assert _count(make_model(ExperimentSettings.of(task, preset))) == parameters


def _count(model):
    return sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)


def test_the_models_of_the_ablation_have_equally_many_parameters():
    models = {name: make_model(ExperimentSettings.of("gp-rbf", name)) for name in ABLATION}
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
        ({"preset": "cnp"}, "`architecture` must be one of"),
        ({"iterations": 0}, "`iterations` must be .*Received: iterations=0"),
        ({"learning_rate": 0}, "`learning_rate`"),
        ({"schedule": "linear"}, "`schedule` must be one of"),
        ({"target_permutations": -1}, "`target_permutations`"),
        (
            {"preset": "np", "target_permutations": 1},
            "`target_permutations` must be 0 for np.*Received: target_permutations=1",
        ),
        (
            {"iterations": 5},
            "`iterations` must be a multiple of `validate_every`.*iterations=5, validate_every=2",
        ),
        ({"test_sequences": 0}, "`test_sequences`"),
        ({"warm_up": 4}, "`warm_up_steps` must be"),
        ({"beta_2": 1.0}, "`beta_2` must be"),
        ({"average": 0.0}, "`average` must be"),
    ],
)
def test_bad_settings(given, message):
    with pytest.raises(ValueError, match=message):
        _settings(**given)


def test_settings_are_kept_as_they_were_checked():
    settings = _settings(learning_rate=1, seed=np.int64(3))
    assert type(settings.seed) is int
    assert settings == _settings(learning_rate=1.0, seed=3)
    assert settings.label == "taylorformer-seed-3"
    assert _settings(target_permutations=5).label == "taylorformer-permutations-5-seed-0"
    assert _settings(preset="np").target_permutations == 0
    assert _settings(validate_every=100).plan.epoch_steps == 4


def test_what_is_not_usual_is_in_the_names_of_a_run():
    usual = _settings()
    assert not {"warm_up", "changes", "variant"} & set(usual.get_config())
    other = _settings(variant="no wave/s", changes={"num_neighbours": 2, "towers": ["x"]})
    assert other.model_name == 'taylorformer, no wave/s, num_neighbours 2, towers ["x"]'
    assert not set('/ "') & set(other.label)
    assert other.label.startswith("taylorformer-no%20wave%2Fs-num_neighbours-2-towers-")
    assert ExperimentSettings(**json.loads(json.dumps(other.get_config()))) == other


def test_a_recipe_fills_in_what_is_not_set():
    tuned = ExperimentSettings.of("gp-rbf", "tnp", recipe="tuned", iterations=3000)
    values = RECIPES["tuned"].settings("tnp", 3000)
    assert values["warm_up"] == round(RECIPES["tuned"].warm_up_share * 3000) > 0
    assert {name: getattr(tuned, name) for name in values} == values
    assert tuned.label == "tnp-tuned-seed-0" and tuned.model_name == "tnp, tuned"
    muon = ExperimentSettings.of("gp-rbf", recipe="muon", iterations=3000)
    assert muon.plan.optimizer == "muon" and "--optimizer muon" in muon.command
    usual = ExperimentSettings.of("gp-rbf", "tnp")
    assert ExperimentSettings.of("gp-rbf", "tnp", recipe="paper") == usual
    given = {"learning_rate": 1e-4, "warm_up": 7, "variant": "mine"}
    other = ExperimentSettings.of("gp-rbf", "tnp", recipe="tuned", iterations=3000, **given)
    assert dataclasses.replace(tuned, **given) == other
    with pytest.raises(ValueError, match=r"`recipe` must be one of 'paper'.*Received: .*'slow'"):
        ExperimentSettings.of("gp-rbf", recipe="slow")
    with pytest.raises(ValueError, match=r"`recipe` must be one of paper for .* images"):
        ExperimentSettings.of("digits", recipe="tuned")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_recipes_are_settings_of_presets_that_exist(recipe):
    assert set(recipe.by_preset) <= set(MODEL_PRESETS)
    for task in TASKS.values():
        for name, preset in MODEL_PRESETS.items():
            if task.kind in preset.kinds and (not recipe.kinds or task.kind in recipe.kinds):
                ExperimentSettings.of(task.name, name, recipe=recipe.name)


def test_changes_are_arguments_of_the_model(tiny):
    model = make_model(_settings(changes={"num_neighbours": 3, "width": 12}))
    assert (model.num_neighbours, model.width, model.num_heads) == (3, 12, 2)
    with pytest.raises(ValueError, match=r"`changes` must be arguments of Taylorformer: .*: seeds"):
        make_model(_settings(changes={"seeds": 3}))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"warm_up": 1, "beta_2": 0.98, "clip_norm": 1.0, "average": 0.99},
        {"recipe": "tuned"},
        {"variant": "wide one", "changes": {"num_heads": 2, "scale": "bounded", "y_noise": 0.5}},
    ],
)
def test_the_recorded_command_gives_the_same_settings(monkeypatch, tmp_path, given):
    settings = _settings("gp-matern", "tnp", seed=4, schedule="cosine", learning_rate=5e-4, **given)
    seen = []

    def stop(plan, *args):
        seen.append(plan)
        raise KeyboardInterrupt

    monkeypatch.setattr("taylorformer.commands.experiment._run", stop)
    words = [*shlex.split(settings.command)[1:], "--output", str(tmp_path), "--overwrite"]
    done = click.testing.CliRunner().invoke(cli, words)
    assert seen == [settings]
    assert done.exit_code == 130
    assert "The same command with --resume instead of --overwrite continues it." in done.output


@pytest.mark.parametrize("preset", _TINY)
def test_a_run_is_put_on_record(tiny, tmp_path, preset):
    settings = _settings(preset=preset)
    run = run_experiment(settings, tmp_path, show_progress=False)
    record = read_record(settings.record_path(tmp_path))
    assert record == run.record
    latent = preset in ("np", "anp")
    scores = record["scores"]["test"]
    way = "joint" if latent else "teacher_forced"
    assert record["score"] == way
    log_likelihoods = run.scores["test"]["log_likelihood"]
    recorded = scores[f"{way}_log_likelihood"]
    assert recorded["mean"] == pytest.approx(log_likelihoods.mean())
    assert recorded["standard_error"] == pytest.approx(log_likelihoods.std(ddof=1) / 3**0.5)
    assert scores["below_ceiling"]["mean"] == pytest.approx(
        scores["ceiling"]["mean"] - recorded["mean"]
    )
    assert scores["ceiling"]["mean"] <= scores["exact_log_likelihood"]["mean"] + 1e-9
    assert scores["ceiling"]["min_scale"] == (0.1 if latent else 1e-3)
    assert ("marginal_log_likelihood" in scores) == latent
    if latent:
        errors = run.scores["test"]["monte_carlo_error"]
        assert scores["monte_carlo_error"] == pytest.approx(np.sqrt(np.sum(errors**2)) / 3)
    assert [row["step"] for row in record["curve"]] == [2, 4]
    assert record["iterations"] == 4
    assert record["best_iteration"] in (2, 4)
    assert record["seconds"]["training"] > 0
    assert record["network"]["seed"] == 0
    assert record["data"]["kernel"] == "rbf"
    assert scores["paper_log_likelihood"]["mean"] == TASKS["gp-rbf"].paper["test"][preset][0]
    folder = tmp_path / "gp-rbf" / f"{preset}-seed-0"
    with np.load(folder / "scores.npz") as arrays:
        np.testing.assert_array_equal(arrays["test_log_likelihood"], log_likelihoods)
    saved = keras.models.load_model(folder / "model.keras")
    again = score_tasks(saved, run.data.test["test"], batch_size=2)
    np.testing.assert_allclose(again["log_likelihood"], log_likelihoods, rtol=1e-5, atol=1e-5)


def test_scores_follow_from_log_prob(tiny):
    tasks = held_out_gaussian_process_tasks("rbf", 5, seed=3, num_points=20, num_context=(3, 12))
    for preset in ("taylorformer", "np"):
        model = make_model(_settings(preset=preset))
        model.compile(run_eagerly=True)
        scores = score_tasks(model, tasks, batch_size=2)
        for row in range(5):
            inputs, y_target = tasks.batch([row])
            keys = {} if preset == "taylorformer" else {"sequence_keys": [row]}
            count = tasks.num_target[row]
            expected = float(model.log_prob(inputs, y_target, **keys)[0]) / count
            assert scores["log_likelihood"][row] == pytest.approx(expected, rel=1e-4, abs=1e-5)
            if keys:
                marginal = float(model.marginal_log_prob(inputs, y_target, **keys)[0]) / count
                assert scores["marginal_log_likelihood"][row] == pytest.approx(marginal, rel=1e-4)
            mean = model({**inputs, "y_target": y_target})["mean"]
            assert scores["squared_error"][row] == pytest.approx(
                float(np.mean((mean - y_target) ** 2)), rel=1e-4
            )


def test_means_that_are_no_numbers():
    assert mean_and_error(np.array([1.0, 3.0])) == {"mean": 2.0, "standard_error": 1.0}
    assert mean_and_error(np.array([1.0])) == {"mean": 1.0, "standard_error": None}
    assert mean_and_error(np.array([1.0, np.inf])) == {"mean": None, "standard_error": None}


class _Stop(keras.callbacks.Callback):
    """Stops training after one evaluation on the validation sequences."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise KeyboardInterrupt


def _without_seconds(curve):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in curve]


def test_a_stopped_run_resumes_to_the_same_weights(tiny, tmp_path):
    settings = _settings(preset="np", schedule="cosine")
    here, there = tmp_path / "a", tmp_path / "b"
    straight = run_experiment(settings, there, show_progress=False)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, here, show_progress=False, callbacks=[_Stop()])
    with pytest.raises(FileExistsError, match=r"training\.npz is there: `resume` continues"):
        run_experiment(settings, here, show_progress=False)
    for changed in ({"learning_rate": 2e-3}, {"iterations": 6}, {"validate_every": 1}):
        others = dataclasses.replace(settings, **changed)
        with pytest.raises(ValueError, match="training can only resume with the data and settings"):
            run_experiment(others, here, resume=True, show_progress=False)
    stopped = run_experiment(settings, here, resume=True, show_progress=False)
    assert _without_seconds(stopped.record["curve"]) == _without_seconds(straight.record["curve"])
    seconds = [row["seconds"] for row in stopped.record["curve"]]
    assert 0 < seconds[0] < seconds[1] == stopped.record["seconds"]["training"]
    for one, other in zip(stopped.model.weights, straight.model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    # A run that is complete is scored again, and trained no more.
    again = run_experiment(settings, here, resume=True, num_orders=2, show_progress=False)
    assert again.record["scores"] == stopped.record["scores"]
    assert again.record["seconds"]["training"] == stopped.record["seconds"]["training"]
    assert again.record["consistency"]["orders"] == 2
    assert again.record["command"] == f"{settings.command} --consistency"
    # Whoever starts anew and stops has no old record that looks like the new one.
    with pytest.raises(KeyboardInterrupt):
        run_experiment(settings, here, overwrite=True, show_progress=False, callbacks=[_Stop()])
    assert not settings.record_path(here).exists()
    with pytest.raises(ValueError, match="`num_orders` must be at least 2"):
        run_experiment(settings, tmp_path / "c", num_orders=1)
    assert not (tmp_path / "c").exists()


def test_images_of_a_run(tiny, tmp_path):
    settings = _settings("digits", "np", test_sequences=1)
    run = run_experiment(settings, tmp_path, show_progress=False)
    scores = run.record["scores"]["test"]
    assert "ceiling" not in scores
    assert "paper_log_likelihood" not in scores
    assert scores["joint_log_likelihood"]["standard_error"] is None
    (picture,) = write_pictures(run, settings.record_path(tmp_path))
    assert picture.name == "np-seed-0-images.png"
    assert picture.stat().st_size > 10_000


def test_no_image_is_scored_twice():
    data = load_task(TASKS["digits"], 10_000, 10_000)
    for tasks in (data.validation, data.test["test"]):
        rows = tasks.about["image_rows"]
        assert len(rows) == len(set(rows)) > 100
    assert len(data.test["test"]) == data.about["test_images"]["test"] == len(data.images["test"])


def test_pixels_of_a_completed_image_are_where_they_belong():
    images = load_images("digits", "test").take(2)
    tasks = whole_image_tasks(images, num_context=16)
    model = NeuralProcess(width=8, latent_dim=4)
    figure = plot_completions(model, tasks, num_images=6, num_samples=2)
    panels = np.reshape([axes.get_images()[0].get_array() for axes in figure.axes], (5, 2, 8, 8))
    truth = images.pixels[..., 0] / images.max_value
    np.testing.assert_allclose(panels[0], truth, atol=1e-6)
    seen = ~np.ma.getmaskarray(figure.axes[2].get_images()[0].get_array())
    assert seen.sum() == 16
    for row in (1, 2, 3):  # what was seen, a sample, the mean
        np.testing.assert_allclose(panels[row, 0][seen], truth[0][seen], atol=1e-6)
    assert np.all(panels[4, 0][seen] == 0)
    assert np.all(panels[4, 0][~seen] > 0)


def test_the_schedule_falls_to_zero():
    optimizer = _settings(schedule="cosine", iterations=10).plan.make_optimizer()
    rate = optimizer._learning_rate
    assert float(rate(0)) == pytest.approx(1e-3)
    assert float(rate(10)) == pytest.approx(0, abs=1e-9)
    assert optimizer.global_clipnorm == 10.0


class _Constructed(keras.Model):
    """Scores with a closed form: the sum of position times y."""

    def teacher_forced(self, inputs, y_target):
        mask = inputs["target_mask"]
        positions = np.arange(1, mask.shape[1] + 1)
        return {"log_prob": np.sum(positions * y_target[..., 0], axis=1, where=mask)}


def test_consistency_of_known_scores():
    """log p = sum of position x y: its deviation over orders follows from the values of y."""
    x = np.arange(12.0).reshape(1, 12, 1).repeat(3, 0)
    y = np.zeros([3, 12, 1])
    y[0, 2:] = 1.0  # all targets alike: no order matters
    y[1, 2] = 1.0  # one target of ten: its position is uniform on 1..10
    y[2, 2] = 1.0  # one target of five
    tasks = TaskSet(x, y, num_context=[2, 2, 2], num_target=[10, 10, 5])
    consistency = measure_consistency(_Constructed(), tasks, num_orders=2000, batch_size=2)
    assert consistency.log_likelihoods.shape == (2000, 3)
    uniform = [np.sqrt((n * n - 1) / 12) / n for n in (10, 5)]
    assert consistency.deviations[0] == 0
    np.testing.assert_allclose(consistency.deviations[1:], uniform, rtol=0.05)
    alone = measure_consistency(_Constructed(), tasks, num_orders=2000, batch_size=3)
    np.testing.assert_array_equal(alone.log_likelihoods, consistency.log_likelihoods)


def test_consistency_is_summed_up():
    scores = np.array([[0.0, 1.0, 2.0], [0.0, 3.0, 2.0]])
    summary = Consistency(scores).summary()
    assert (summary["orders"], summary["sequences"]) == (2, 3)
    assert summary["mean"] == pytest.approx(1 / 3)
    np.testing.assert_allclose(summary["interval_95"], np.quantile([0, 1, 0], [0.025, 0.975]))
    with pytest.raises(ValueError, match=r"`num_orders`.*Received: num_orders=1"):
        measure_consistency(_Constructed(), None, num_orders=1)


def test_latent_models_are_consistent(tiny):
    model = make_model(_settings(preset="np"))
    model.compile(run_eagerly=True)
    tasks = held_out_gaussian_process_tasks("rbf", 3, seed=3, num_points=20, num_context=(3, 12))
    assert measure_consistency(model, tasks, 3).deviations.max() < 1e-5


def _record(preset="tnp", seed=0, value=1.0, **more):
    return {
        "format": 1,
        "versions": {"taylorformer": "0.1.0"},
        "settings": {
            "task": "gp-rbf",
            "architecture": preset,
            "seed": seed,
            "iterations": 10,
            "batch_size": 32,
            "learning_rate": 5e-4,
            "schedule": "cosine",
            "target_permutations": more.pop("target_permutations", int(preset != "np")),
            "validate_every": 5,
            "validation_sequences": 256,
            "test_sequences": 9,
        },
        "score": "teacher_forced",
        "iterations": 10,
        "parameters": 1234,
        "seconds": {"training": 120.0},
        "curve": [{"step": step, "validation_nll": 1.0 / step} for step in (1, 5, 10)],
        "scores": {
            "test": {
                "sequences": 9,
                "teacher_forced_log_likelihood": {"mean": value, "standard_error": 0.01},
                "exact_log_likelihood": {"mean": 5.5, "standard_error": 0.01},
                "ceiling": {"mean": 5.0, "min_scale": 0.1},
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
    spread = f"{np.std([1, 2], ddof=1):.3f}"
    for column, text in {
        "log-likelihood": f"1.500 +- {spread}",
        "below it": f"3.500 +- {spread}",
        "exact": "5.500",
        "ceiling": "5.000 (0.1)",
        "paper": "3.50 +- 0.05",
        "paper's": "250,000",
        "learning rate": "0.0005, cosine",
        "runs": "2",
    }.items():
        assert rows[0][column] == text
    assert rows[1]["model"] == "taylorformer, 5 permutations"
    assert rows[1]["log-likelihood"] == "3.000 +- 0.010"
    assert rows[1]["below it"] == "2.000 +- 0.020"
    lines = markdown_table(rows).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert "marginal" not in lines[0]
    measured = _record(
        consistency={"orders": 40, "sequences": 9, "mean": 0.5, "interval_95": [0.1, 0.9]}
    )
    assert consistency_rows([*records, measured]) == [
        "- gp-rbf, tnp, seed 0: standard deviation over 40 orders of the targets 0.500, 95 % of 9 "
        "sequences in [0.100, 0.900]"
    ]


def test_records_are_read(tmp_path):
    folder = tmp_path / "gp-rbf"
    folder.mkdir()
    for number, preset in enumerate(["np", "taylorformer", "tnp"]):
        (folder / f"{number}.json").write_text(json.dumps(_record(preset)))
    (tmp_path / "notes.json").write_text("no record, and none of our business")
    order = [record["settings"]["architecture"] for record in read_records(tmp_path)]
    assert order == ["taylorformer", "tnp", "np"]
    with pytest.raises(FileNotFoundError, match="no record"):
        read_records(tmp_path / "nothing")
    for text, message in (
        ("{}", "a file that `run_experiment` wrote"),
        ("[]", "a file that `run_experiment` wrote"),
        ("", "a file that `run_experiment` wrote"),
        (json.dumps({**_record(), "format": 2}), "of the format 2, made by taylorformer 0.1.0"),
        (json.dumps(_record("gone")), "a task and a model of this version"),
    ):
        (folder / "other.json").write_text(text)
        with pytest.raises(ValueError, match=rf"{message}.*") as error:
            read_records(tmp_path)
        assert "other.json" in str(error.value)


def test_curves_can_be_read_off_whatever_the_legend():
    records = [_record(name) for name in ABLATION]
    records[0]["curve"][0]["validation_nll"] = None
    figure = plot_validation_curves(records, "gp-rbf: validation")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_position().width > 0.7
    assert [len(line.get_xdata()) for line in axes.lines] == [2, 3, 3, 3]
    legend = axes.get_legend().get_window_extent()
    assert legend.x1 <= figure.bbox.x1
    assert len(axes.get_legend().get_texts()) == 4


def test_curves_are_drawn_over_minutes_where_they_are_known():
    records = [_record(name) for name in ABLATION[:2]]
    rows = [row for record in records for row in record["curve"]]
    for row in rows[1:]:
        row["seconds"] = 30.0 * row["step"]
    # A curve without its beginning would say that its model learnt late.
    assert len(plot_validation_curves(records).axes) == 1
    rows[0]["seconds"] = 30.0 * rows[0]["step"]
    steps, minutes = plot_validation_curves(records, "gp-rbf: validation").axes
    assert minutes.get_xlabel() == "minutes of training"
    over_steps, over_minutes = (axes.lines[1].get_xdata() for axes in (steps, minutes))
    np.testing.assert_allclose(over_minutes, over_steps / 2)
    assert minutes.get_legend() is None
    assert steps.get_ylim() == minutes.get_ylim()


def test_many_curves_can_be_told_apart_in_two_wide_panels():
    records = []
    for variant in "abcdefgh":
        record = _record()
        record["settings"]["variant"] = f"a variant of a long name {variant}"
        for row in record["curve"]:
            row["seconds"] = 30.0 * row["step"]
        records.append(record)
    figure = plot_validation_curves(records, "gp-rbf: validation")
    figure.draw_without_rendering()
    assert all(axes.get_position().width > 0.4 for axes in figure.axes)
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 8
    assert figure.axes[0].get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_histograms_of_consistency_share_a_scale():
    rng = np.random.default_rng(0)
    figure = plot_consistency({"a": rng.random(100), "b": 2 * rng.random(100)})
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in figure.axes]
    assert heights == [100, 100]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()


def test_the_command(tiny, tmp_path):
    words = (
        "experiment gp-rbf --architecture np --iterations 4 --batch-size 2 --validate-every 2 "
        f"--validation-sequences 3 --test-sequences 3 --consistency --output {tmp_path}"
    ).split()
    runner = click.testing.CliRunner()
    done = runner.invoke(cli, words)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "gp-rbf"
    for name in ("np-seed-0.json", "np-seed-0-samples.png", "validation-curves.png"):
        assert (folder / name).stat().st_size > 500
    assert (folder / "consistency.png").stat().st_size > 500
    assert "joint log-likelihood" in done.output
    table = (tmp_path / "table.md").read_text()
    assert table in done.output
    assert "| gp-rbf   | np " in table
    assert "standard deviation over 40 orders of the targets 0.000" in table
    again = runner.invoke(cli, [*words, "--resume", "--repeats", "2"])
    assert again.exit_code == 0, again.output
    assert "np-seed-0.json is there already" in again.output
    assert (folder / "np-seed-1.json").exists()
    shown = runner.invoke(cli, ["experiment", "--table", "--output", str(tmp_path)])
    assert shown.output.strip() == (tmp_path / "table.md").read_text().strip()
    assert "| 2 |" in shown.output.replace(" " * 3, "")


def test_only_the_run_that_was_asked_for_is_done(tmp_path):
    def is_done(plan, consistency=False):
        return experiment_command._is_done(tmp_path, plan, True, False, consistency)

    plan = _settings(test_sequences=30)
    assert not is_done(plan)
    path = plan.record_path(tmp_path)
    path.parent.mkdir()
    record = {**_record(), "settings": plan.get_config(), "command": plan.command}
    path.write_text(json.dumps(record))
    assert is_done(plan)
    # The command of the other settings begins like the one on record.
    others = [(plan, True), (_settings(test_sequences=3), False)]
    for other, consistency in others:
        with pytest.raises(click.BadParameter, match="its checkpoint is not"):
            is_done(other, consistency)
    checkpoint = plan.checkpoint_path(tmp_path)
    checkpoint.parent.mkdir()
    checkpoint.touch()
    assert not any(is_done(*other) for other in others)
    path.write_text(json.dumps({**record, "consistency": {}}))
    assert is_done(plan, consistency=True)
    assert is_done(plan)


def test_the_ablation_trains_its_four_models(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        "taylorformer.commands.experiment._run", lambda plan, *args: seen.append(plan.label)
    )
    words = ["experiment", "gp-rbf", "--ablation", "--validation-sequences", "1"]
    words += ["--test-sequences", "1", "--output", str(tmp_path)]
    done = click.testing.CliRunner().invoke(cli, words)
    assert seen == [f"{name}-seed-0" for name in ABLATION]
    assert done.exit_code == 2  # no record was written, so that there is no table


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["experiment"], "TASK is missing"),
        (["experiment", "gp-cubic"], "`task` must be one of"),
        (["experiment", "gp-rbf", "--architecture", "x"], "`architecture` must be one of"),
        (["experiment", "gp-rbf", "--resume", "--overwrite"], "exclude each other"),
        (["experiment", "gp-rbf", "--ablation", "--architecture", "np"], "exclude each other"),
        (["experiment", "gp-rbf", "--iterations", "501"], "must be a multiple"),
        (
            ["experiment", "gp-rbf", "--architecture", "np", "--target-permutations", "5"],
            "must be 0 for np",
        ),
        (["experiment", "gp-rbf", "--set", "width"], "--set must be NAME=VALUE. Received: width"),
        (["experiment", "prior", "--average", "0.9"], "prior takes --iterations"),
        (["experiment", "--table", "--output", "nowhere"], "no record of an experiment"),
    ],
)
def test_bad_commands(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    _is_refused(capsys, words, message)


def _is_refused(capsys, words, message):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_nothing_is_replaced_unasked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["experiment", "gp-rbf", "--architecture", "np", "--output", "out"]
    folder = tmp_path / "out" / "gp-rbf"
    (folder / "np-seed-0").mkdir(parents=True)
    (folder / "np-seed-0" / "training.npz").write_bytes(b"")
    _is_refused(capsys, words, "training.npz is there; --resume continues it")
    (folder / "np-seed-0.json").write_text("[]")
    _is_refused(capsys, words, "np-seed-0.json is there; --resume leaves it")
    _is_refused(capsys, [*words, "--resume"], "a file that `run_experiment` wrote")


def test_the_list(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["experiment", "--list"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    for name in (*TASKS, *MODEL_PRESETS):
        assert f"  {name} " in shown


def test_presets_name_models_that_exist():
    assert {preset.model for preset in MODEL_PRESETS.values()} == set(MODELS)


@pytest.mark.skipif(not list(RESULTS.rglob("*.json")), reason="no recorded runs in this checkout")
def test_no_recorded_run_is_above_the_ceiling():
    """A model above the ceiling has seen what it predicts."""
    checked = 0
    folders = {path.parents[1] for path in RESULTS.rglob("*-seed-*.json")}
    for record in (record for folder in folders for record in read_records(folder)):
        for scores in record["scores"].values():
            if "below_ceiling" in scores:
                below = scores["below_ceiling"]
                assert below["mean"] > -3 * below["standard_error"], record["command"]
                checked += 1
    assert checked > 0
