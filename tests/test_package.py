"""The house around the models: the face, the command line, the wheel and both kinds of install."""

import ast
import errno
import importlib
import json
import os
import shutil
import subprocess
import sys
import types
import venv
import warnings
import zipfile
from pathlib import Path

import pytest

import taylorformer
from taylorformer import _registry, cli
from taylorformer.training_and_evaluation.forecasting.pretrained_weights import PRETRAINED

ROOT = Path(__file__).parents[1]
FOLDERS = ("data_wrangler", "model", "comparison_models", "training_and_evaluation")
COMMANDS = ("demo", "fit", "forecast", "backtest", "export", "experiment")
HEAVY = ("tensorflow", "keras", "pandas", "matplotlib")


def _package_files(*endings):
    """Yields the path of each file of the package in the wheel and in the repository."""
    for folder in ("taylorformer", *FOLDERS):
        installed = "taylorformer" if folder == "taylorformer" else f"taylorformer/{folder}"
        for path in sorted((ROOT / folder).rglob("*")):
            if path.name.endswith(endings):
                yield f"{installed}/{path.relative_to(ROOT / folder).as_posix()}", path


def _run(*command, cwd=ROOT, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    for name in ("PYTHONPATH", "EAGER_IMPORT", "TAYLORFORMER_DEBUG"):
        environment.pop(name, None)
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A copy of what a build needs, so that the working tree stays clean."""
    copy = tmp_path_factory.mktemp("source") / "checkout"
    for folder in ("taylorformer", *FOLDERS, "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, copy / folder, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture(scope="session")
def wheel(source, tmp_path_factory):
    """The wheel that is built from the source distribution, as on an index of packages."""
    target = str(tmp_path_factory.mktemp("wheel"))
    code = f"from setuptools import build_meta; build_meta.build_sdist({target!r})"
    packed = _run(sys.executable, "-c", code, cwd=source)
    assert packed.returncode == 0, packed.stderr
    (archive,) = Path(target).glob("*.tar.gz")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", target)
    built = _run(sys.executable, "-m", "pip", "wheel", *options, str(archive), cwd=target)
    assert built.returncode == 0, built.stderr
    (path,) = Path(target).glob("*.whl")
    return path


# The face.


def test_import_and_help_leave_heavy_packages_alone():
    code = f"""
import contextlib, io, json, runpy, sys
import taylorformer
taylorformer.model, taylorformer.data_wrangler, taylorformer.comparison_models
taylorformer.training_and_evaluation, taylorformer.__version__, dir(taylorformer)
from taylorformer.cli import cli
helps = []
for command in ([], *([name] for name in cli.commands)):
    sys.argv = ["taylorformer", *command, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        try:
            runpy.run_module("taylorformer", run_name="__main__")
        except SystemExit as end:
            status = end.code
    loaded = [name for name in {HEAVY} if name in sys.modules]
    helps.append([command, status, shown.getvalue(), loaded])
print(json.dumps(helps))
"""
    run = _run(sys.executable, "-c", code)
    assert run.returncode == 0, run.stderr
    helps = json.loads(run.stdout)
    for command, status, shown, loaded in helps:
        assert (status, loaded) == (0, []), command
        assert shown.startswith(" ".join(["Usage: taylorformer", *command, "[OPTIONS]"]))
    assert {name for command, *_ in helps for name in command} == set(COMMANDS)
    assert all(f"\n  {name} " in helps[0][2] for name in COMMANDS)


@pytest.mark.parametrize(
    "package",
    ["taylorformer", *(f"taylorformer.{f}" for f in FOLDERS)],
)
def test_every_public_name_resolves_to_what_the_stub_says(package):
    module = importlib.import_module(package)
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    public = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                value = getattr(module, alias.name)
                home = ".".join([package, *filter(None, [node.module])])
                if isinstance(value, types.ModuleType):
                    assert value.__name__ == f"{home}.{alias.name}"
                else:
                    assert (value.__module__, value.__name__) == (home, alias.name)
                public[alias.name] = value
    assert sorted(public) == sorted(module.__all__)
    assert set(public) <= set(dir(module))


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = taylorformer.no_such_name


def test_registry_lists_every_module_with_a_serializable_class():
    using = {
        installed.removesuffix(".py").replace("/", ".")
        for installed, path in _package_files(".py")
        if "@keras.saving.register_keras_serializable" in path.read_text()
    }
    assert set(_registry.SERIALIZABLE_MODULES) == using
    assert len(_registry.SERIALIZABLE_MODULES) == len(using)


def test_first_public_name_registers_and_sub_packages_do_not(monkeypatch):
    imported = []
    monkeypatch.setattr(_registry, "register", lambda: imported.append("registered"))
    monkeypatch.delitem(vars(taylorformer), "model", raising=False)
    assert taylorformer.model.__name__ == "taylorformer.model"
    assert imported == []
    monkeypatch.delitem(vars(taylorformer), "RepresentationExtractor", raising=False)
    assert taylorformer.RepresentationExtractor.__name__ == "RepresentationExtractor"
    assert imported == ["registered"]


def test_a_model_is_loaded_after_the_bare_import():
    code = f"""
import sys, taylorformer
taylorformer.__all__, dir(taylorformer)
print([name for name in {HEAVY} if name in sys.modules])
print([type(taylorformer.load_model(path)).__name__ for path in sys.argv[1:]])
"""
    golden = ROOT / "tests" / "golden"
    run = _run(sys.executable, "-c", code, str(golden / "tnp.keras"), str(golden / "np.keras"))
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["[]", "['TransformerNeuralProcess', 'NeuralProcess']"]


def test_load_model_says_what_is_no_model_file(tmp_path):
    path = ROOT / "tests" / "golden" / "np.keras"
    model = taylorformer.load_model(path, compile=False)
    assert isinstance(model, taylorformer.NeuralProcess) and not model.compiled
    with pytest.raises(FileNotFoundError, match=r"`path` must be a `\.keras` file.*is not there"):
        taylorformer.load_model(tmp_path / "gone.keras")
    (tmp_path / "text.keras").write_text("no archive")
    shutil.copy(path, tmp_path / "np.zip")
    (tmp_path / "folder.keras").mkdir()
    for name in ("text.keras", "np.zip", "folder.keras", "."):
        with pytest.raises(ValueError, match=r"`path` must be a `\.keras` file, as `model.save`"):
            taylorformer.load_model(tmp_path / name)


@pytest.mark.slow
def test_registration_in_a_fresh_process():
    code = """
import keras
import taylorformer
before = keras.saving.get_registered_object("taylorformer>ReleasedRepresentationExtractor")
taylorformer.RepresentationExtractor
after = keras.saving.get_registered_object("taylorformer>ReleasedRepresentationExtractor")
print(before is None, after.__name__)
"""
    run = _run(sys.executable, "-c", code)
    assert run.stdout.split() == ["True", "ReleasedRepresentationExtractor"], run.stderr


def test_another_backend_is_one_clear_sentence(tmp_path):
    code = """
import sys
import taylorformer
try:
    taylorformer.Taylorformer
except ImportError as error:
    print(error)
print("keras" in sys.modules)
from taylorformer.cli import main
main(["demo"])
"""
    # Not in a checkout, where `make demo` may have filled the folder that the demo writes to.
    run = _run(sys.executable, "-c", code, cwd=tmp_path, KERAS_BACKEND="jax")
    sentence, keras_was_imported = run.stdout.splitlines()
    assert "KERAS_BACKEND=tensorflow" in sentence and sentence.endswith("Received: backend='jax'")
    assert keras_was_imported == "False"
    assert (run.returncode, run.stderr) == (2, f"Error: {sentence}\n")


def test_the_backend_of_a_loaded_keras_counts(monkeypatch):
    import keras

    monkeypatch.setenv("KERAS_BACKEND", "jax")
    _registry.check_backend()
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(ImportError, match="Received: backend='torch'"):
        _registry.check_backend()


# The command line.


@pytest.fixture
def command(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            cli.main(list(arguments))
        shown = capsys.readouterr()
        return end.value.code, shown.out, shown.err

    return run


@pytest.fixture
def demo(monkeypatch):
    """Puts a stand-in for the demo, and returns the list of its calls."""
    calls = []
    stand_in = types.ModuleType("taylorformer.training_and_evaluation.forecasting.demo")
    stand_in.run_demo = lambda **options: calls.append(options)
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    return calls, stand_in


def test_version_and_help(command):
    status, shown, message = command("--version")
    assert (status, message) == (0, "")
    assert shown.startswith(f"taylorformer {taylorformer.__version__}\npython 3")
    assert "\ntensorflow 2" in shown and "\nkeras 3" in shown
    status, shown, _ = command()
    assert (status, shown) == command("--help")[:2]
    assert shown.startswith("Usage: taylorformer") and "demo" in shown


def test_demo_passes_its_options_on(command, demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command("demo") == (0, "", "")
    options = ("--output", "other", "--seed", "3", "--steps", "5", "--samples", "7")
    assert command("demo", *options) == (0, "", "")
    usual = {"output": Path("runs/demo"), "seed": 0, "steps": 300, "num_samples": 100}
    others = {"output": Path("other"), "seed": 3, "steps": 5, "num_samples": 7}
    assert not any(call.pop("console").quiet for call in demo[0])
    assert demo[0] == [{**usual, "overwrite": False}, {**others, "overwrite": False}]


def test_demo_replaces_nothing_unasked(command, demo, tmp_path):
    (tmp_path / "forecast.csv").write_text("of a person")
    status, _, message = command("demo", "--output", str(tmp_path))
    assert (status, demo[0]) == (2, []) and "is not empty; --overwrite replaces" in message
    assert command("demo", "--output", str(tmp_path), "--overwrite")[0] == 0
    assert demo[0][0]["overwrite"]


@pytest.mark.parametrize(
    "arguments, named",
    [
        (("demo", "--steps", "0"), "--steps"),
        (("demo", "--seed", "none"), "--seed"),
        (("demo", "--no-such-option"), "--no-such-option"),
        (("no-such-command",), "no-such-command"),
        (("demo", "--output", __file__), "test_package.py"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, demo, arguments, named):
    status, shown, message = command(*arguments)
    assert (status, shown, demo[0]) == (2, "", [])
    assert message.startswith("Error: ") and named in message
    assert message.count("\n") == 1


@pytest.fixture
def failing(demo, monkeypatch, tmp_path):
    """Makes the demo raise an error, in a folder where it has not run."""
    monkeypatch.chdir(tmp_path)

    def fail_with(error):
        def fail(**_):
            raise error

        monkeypatch.setattr(demo[1], "run_demo", fail)

    return fail_with


@pytest.mark.parametrize("kind", [ValueError, ImportError, FileNotFoundError])
def test_bad_input_shows_one_line_unless_debugging(command, failing, monkeypatch, kind):
    failing(kind("`steps` must be positive.\nReceived: steps=0"))
    line = "Error: `steps` must be positive. Received: steps=0\n"
    assert command("demo") == (2, "", line)
    for arguments in (("--debug", "demo"), ("demo",)):
        status, _, message = command(*arguments)
        assert status == 2 and message.endswith(line) and "Traceback" in message
        monkeypatch.setenv("TAYLORFORMER_DEBUG", "1")


@pytest.mark.parametrize("kind", [TypeError, KeyError, AttributeError, ZeroDivisionError])
def test_a_fault_of_the_package_is_not_shown_as_bad_input(command, failing, kind):
    failing(kind("a fault"))
    status, _, message = command("demo")
    assert status == 1 and "Traceback" in message and "a fault" in message
    assert "This is a fault of taylorformer" in message.splitlines()[-1]


def test_errors_of_files_name_the_file(command, failing):
    failing(OSError(errno.ENOSPC, "No space left on device", "folder/file.csv"))
    assert command("demo") == (2, "", "Error: folder/file.csv: No space left on device\n")


def test_warnings_are_one_line_without_a_path(command, demo, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def warn(**_):
        warnings.warn("two\nlines", UserWarning, stacklevel=1)

    monkeypatch.setattr(demo[1], "run_demo", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert command("demo") == (0, "", "Warning: two lines\n")


# The wheel and the installs.


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    held = {name for name in names if ".dist-info/" not in name}
    endings = (".py", ".pyi", "py.typed")
    wanted = {installed for installed, _ in _package_files(*endings)}
    assert {name for name in held if name.endswith(endings)} == wanted
    for folder in ("commands", *FOLDERS, "model/layers", "model/sampling", "data_wrangler/tasks"):
        assert f"taylorformer/{folder}/__init__.py" in held
    assert "taylorformer/py.typed" in held and "taylorformer/__init__.pyi" in held
    data = {installed for installed, _ in _package_files(".csv", ".txt", ".keras", ".json")}
    # A series with its source, and each pretrained model with its record.
    stems = {"mauna_loa_co2", *(preset.version for preset in PRETRAINED.values())}
    assert {Path(name).stem for name in data} == stems and len(data) == 2 * len(stems)
    assert Path(wheel).stat().st_size < 5 * 2**20
    assert held - wanted == data
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.fixture
def bare_python(tmp_path):
    """An interpreter that sees the dependencies but no installed Taylorformer."""
    # A line in a .pth file adds a folder without reading the .pth files in it, so an editable
    # install of the environment that runs the tests stays unseen.
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    scripts = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = Path(_run(python, "-c", code).stdout.strip())
    seen = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (folder / "dependencies.pth").write_text("\n".join(seen) + "\n")
    if _run(python, "-c", "import taylorformer", cwd=tmp_path).returncode == 0:
        pytest.skip("Taylorformer is installed from a wheel in the environment of the tests.")
    return python


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_installs_work_from_the_checkout_and_from_elsewhere(
    kind, source, wheel, bare_python, tmp_path
):
    use = "import taylorformer as t, taylorformer.cli as c; print(c.__file__, t.model.__file__)"
    pip = (sys.executable, "-m", "pip", "--python", bare_python)

    for arguments in (("-m", "taylorformer", "--help"), ("-c", "import taylorformer.model")):
        run = _run(bare_python, *arguments, cwd=source)
        assert run.returncode == 1
        assert "Taylorformer is not installed for" in run.stderr.splitlines()[-1]
        assert "pip install -e ." in run.stderr and "No module named" not in run.stderr
    assert "Traceback" not in _run(bare_python, "-m", "taylorformer", cwd=source).stderr

    what = (str(wheel),) if kind == "wheel" else ("--no-build-isolation", "-e", str(source))
    installed = _run(*pip, "install", "--no-deps", "--no-index", *what)
    assert installed.returncode == 0, installed.stderr
    for folder in (source, tmp_path):
        shown = _run(bare_python, "-m", "taylorformer", "--help", cwd=folder)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith("Usage: taylorformer")
        run = _run(bare_python, "-c", use, cwd=folder)
        assert run.returncode == 0, run.stderr
        face, model = map(Path, run.stdout.split())
        if kind == "editable":
            assert (face.parent, model.parent) == (source / "taylorformer", source / "model")
        else:  # all parts from the installed copy, also in the checkout
            assert model.parent.parent == face.parent != source / "taylorformer"
    script = _run(str(Path(bare_python).with_name("taylorformer")), "--version", cwd=tmp_path)
    assert script.stdout.splitlines()[0] == f"taylorformer {taylorformer.__version__}"
    check = _run(*pip, "check")
    assert "taylorformer" not in check.stdout, check.stdout
