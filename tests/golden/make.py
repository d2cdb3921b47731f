"""Writes golden files, and the outputs of golden files, with the package that is installed.

Every kind of file is here as the first layout of the package wrote it, so that what users have
saved keeps loading. Only public faces are imported: the script runs with any layout.

    python tests/golden/make.py files FOLDER    writes the files anew, then their outputs
    python tests/golden/make.py outputs FILE    loads the committed files, writes their outputs
    python tests/golden/make.py compare A B     compares two such files to the last bit
"""

import os
import shutil
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
OUTPUTS = "outputs.npz"
NUM_SAMPLES = 4
SEED = 11
_TINY = {"num_heads": 2, "head_dim": 4, "width": 8, "num_layers": 2}
_LATENT = {"width": 8, "latent_dim": 4, "num_latents": 2, "log_prob_latents": 3}


def batch(x_dims=1, y_dims=1):
    """Makes a padded batch of smooth functions: the inputs, and `y_target`."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (3, 9, x_dims))
    y = np.sin(3 * x @ rng.normal(size=(3, x_dims, y_dims)) + rng.normal(size=(3, 1, y_dims)))
    x, y = x.astype("float32"), y.astype("float32")
    inputs = {"x_context": x[:, :5], "y_context": y[:, :5], "x_target": x[:, 5:]}
    inputs["context_mask"] = np.arange(5) < np.array([[5], [3], [0]])
    inputs["target_mask"] = np.arange(4) < np.array([[4], [4], [2]])
    return inputs, y[:, 5:]


def models():
    """Makes one small model of each kind, by the name of its file, with its D_x and D_y."""
    from taylorformer import (
        AttentiveNeuralProcess,
        NeuralProcess,
        Taylorformer,
        TransformerNeuralProcess,
    )

    common = {"seed": 3, "predict_samples": 4}
    taylorformer = {**common, **_TINY, "encoding_dim": 4}
    second = {"taylor_order": 2, "feature_order": 2, "num_neighbours": 3, "neighbour_dims": 1}
    tnp = {"num_heads": 2, "width": 8, "num_layers": 2, "feed_forward": 6}
    return {
        "taylorformer": (Taylorformer(**taylorformer), 1, 1),
        "taylorformer_second": (
            Taylorformer(**taylorformer, **second, scale="bounded", target_permutations=2),
            2,
            2,
        ),
        "np": (NeuralProcess(**common, **_LATENT), 1, 1),
        "anp": (AttentiveNeuralProcess(**common, **_LATENT, num_heads=2), 2, 1),
        "tnp": (TransformerNeuralProcess(**common, **tnp, y_noise=0.05), 1, 2),
    }


def table(ids=()):
    """Makes a daily table with gaps: one series, or one for each id, with a covariate."""
    parts = []
    for number, name in enumerate(ids or [""]):
        values = 50 + 9 * np.sin(np.arange(70) / 3 + number)
        values[[7, 20, 66]] = np.nan
        days = pd.date_range("2020-01-01", periods=70)
        part = pd.DataFrame({"unique_id": name, "ds": days, "y": values, "z": values**2})
        parts.append(part.assign(weekend=days.day_of_week >= 5))
    return pd.concat(parts, ignore_index=True)


def future(ids=("a", "b")):
    """Makes the times and covariates after `table(ids)`."""
    days = pd.date_range("2020-03-11", periods=4)
    parts = [pd.DataFrame({"unique_id": name, "ds": days}) for name in ids]
    return pd.concat(parts, ignore_index=True).assign(weekend=[False, True, True, False] * 2)


def forecasters():
    """Makes one small forecaster of each scaling, by the name of its folder."""
    from taylorformer import Forecaster
    from taylorformer.training_and_evaluation import ForecastPreset

    plan = {"batch_size": 4, "max_steps": 4, "steps_per_epoch": 2, "learning_rate": 3e-3}
    preset = ForecastPreset("tiny", **{**_TINY, "num_layers": 1}, encoding_dim=4, **plan)
    panel = {"id_column": "unique_id", "covariate_columns": ["weekend"]}
    return {
        "forecaster_window": (Forecaster(4, 6, preset=preset, seed=1), {"target_columns": "y"}),
        "forecaster_standard": (
            Forecaster(4, 6, preset=preset, scaling="standard", seed=1),
            {"target_columns": ["y", "z"], **panel},
        ),
    }


def write_files(folder):
    """Writes every golden file."""
    from taylorformer.data_wrangler import held_out_gaussian_process_tasks

    for name, (model, x_dims, y_dims) in models().items():
        inputs, y_target = batch(x_dims, y_dims)
        model.compile()
        model.fit(inputs, y_target, batch_size=2, epochs=2, verbose=0)
        model.save(folder / f"{name}.keras")
    for name, (forecaster, columns) in forecasters().items():
        frame = table(["a", "b"]) if "id_column" in columns else table()
        checkpoint = {"checkpoint": folder / "checkpoint.npz"} if name.endswith("window") else {}
        forecaster.fit(frame, "ds", **columns, **checkpoint)
        forecaster.save(folder / name, overwrite=True)
    held_out_gaussian_process_tasks("rbf", num_sequences=4, seed=0).save(
        folder / "tasks.npz", overwrite=True
    )


def model_outputs(path):
    """Loads a model; returns what it computes, and what one more training step makes of it."""
    import keras

    import taylorformer

    taylorformer.Taylorformer  # noqa: B018  the first public name registers every class
    model = keras.models.load_model(path)
    inputs, y_target = batch(model.x_dims, model.y_dims)
    outputs = model.teacher_forced(inputs, y_target)
    result = {name: value.numpy() for name, value in outputs.items()}
    for order in ("given", "random", "nearest"):
        samples = model.sample(inputs, NUM_SAMPLES, SEED, sequence_keys=[1, 2, 3], order=order)
        result[f"samples_{order}"] = samples.numpy()
    result |= {f"predicted_{k}": v for k, v in model.predict(inputs, verbose=0).items()}
    model.fit(inputs, y_target, batch_size=2, epochs=3, initial_epoch=2, verbose=0)
    result["log_prob_trained"] = model.log_prob(inputs, y_target).numpy()
    return result


def forecaster_outputs(folder):
    """Loads a forecaster; returns its forecast, its scores, and what it is as a SavedModel."""
    from taylorformer import Forecaster

    forecaster = Forecaster.load(folder)
    is_panel = len(forecaster.columns_.covariate_columns) > 0
    frame = table(["a", "b"]) if is_panel else table()
    after = {"future": future()} if is_panel else {}
    forecast = forecaster.forecast(frame, **after, num_samples=NUM_SAMPLES, seed=SEED)
    scores = forecaster.backtest(frame, num_samples=NUM_SAMPLES, num_windows=3)
    numbers = scores.scores.select_dtypes("number").to_numpy(float)
    return {"samples": np.asarray(forecast.samples), "backtest": numbers}


def resumed_outputs(checkpoint):
    """Continues the training of a checkpoint, which is left as it is."""
    import tempfile

    forecaster, columns = forecasters()["forecaster_window"]
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copy(checkpoint, folder))
        forecaster.set_params(max_steps=6)
        forecaster.fit(table(), "ds", **columns, checkpoint=copied, resume=True)
    history = forecaster.history_.drop(columns="seconds", errors="ignore")
    return {"history": history.to_numpy(float)}


def outputs(folder=FOLDER):
    """Returns what the golden files of a folder compute, by `file/output`."""
    from taylorformer.data_wrangler import TaskSet

    results = {path.stem: model_outputs(path) for path in sorted(folder.glob("*.keras"))}
    for path in sorted(folder.glob("forecaster_*")):
        results[path.name] = forecaster_outputs(path)
    results["checkpoint"] = resumed_outputs(folder / "checkpoint.npz")
    inputs, y_target = TaskSet.load(folder / "tasks.npz").batch(range(4))
    results["tasks"] = {**inputs, "y_target": y_target}
    return {f"{file}/{name}": v for file, values in results.items() for name, v in values.items()}


def main(command, *paths):
    """Runs one of the three commands; the exit code is 1 where files differ."""
    if command == "files":
        folder = Path(paths[0])
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder)
        np.savez_compressed(folder / OUTPUTS, **outputs(folder))
    elif command == "outputs":
        np.savez_compressed(paths[0], **outputs())
    elif command == "compare":
        with np.load(paths[0]) as first, np.load(paths[1]) as second:
            same = {
                name: name in second and first[name].tobytes() == second[name].tobytes()
                for name in first.files
            }
        differ = [name for name, equal in same.items() if not equal]
        sys.stdout.write(f"{len(same)} outputs, {len(differ)} differ: {', '.join(differ)}\n")
        return int(bool(differ))
    else:
        sys.stdout.write(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
