"""Finds words that this project does not use, in names, docstrings, comments, messages and docs.

    python tests/plain_words.py [FILE OR FOLDER ...]

prints one line for each. The list is short: words of a private dialect, each with a term of the
field or a plain word that says more. `ALLOWED` lists the exceptions with their reasons.
"""

import ast
import bisect
import io
import itertools
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "benchmarks",
    "comparison_models",
    "data_wrangler",
    "docs",
    "examples",
    "model",
    "taylorformer",
    "tests",
    "training_and_evaluation",
)
FILES = ("CHANGELOG.md", "README.md", "setup.py", "Makefile", "pyproject.toml")

# In sentences, whose spaces may be ends of lines: the pattern, and what to say instead.
SENTENCES = {
    r"laws?": "distribution",
    r"(?<!in )(?<!takes )(?<!take )(?<!decimal )places?": "index, position or order",
    r"in the places? of": "instead of, for",
    r"gave": "returned by",
    r"(?:go|goes|going|gone|went) on": "resumes, continues",
    r"(?:go|goes|going|went) with no": "is independent of",
    r"(?<![-`])architectures?": "model (the object) or preset (its settings)",
    r"(?<!neural )networks?": "model (the object) or preset (its settings)",
    r"own(?= ?[.,;:)]| ?$)": "a noun: context, target, window, ...",
    r"the (?:known|near|found|several)(?= ?[.,;:)]| ?$)": "a noun: context, target, window, ...",
}

# In names: as one of the parts between underscores, or as the whole name.
NAME_PARTS = {
    "law": "distribution",
    "laws": "distribution",
    "place": "index, position or order",
    "places": "index, position or order",
    "gave": "returned",
    "architecture": "model or preset",
    "architectures": "model or preset",
}
WHOLE_NAMES = {
    name: "a noun: context, target, window, horizon, sequence, sample path, ..."
    for name in ("own", "known", "near", "found", "several")
}

_PUBLIC = "a public name, an option of the command line, and a key of records"

# (file or folder, what stands there): why it may.
ALLOWED: dict[tuple[str, str], str] = {
    ("comparison_models/latent_model.py", "place_dense"): "part of the format of `.keras` files",
    ("model/layers/local_taylor.py", "network"): "the name of an argument",
    ("tests/plain_words.py", ""): "this list",
    ("tests/test_words.py", ""): "tests of this list",
    ("training_and_evaluation/experiments/presets.py", "architecture"): _PUBLIC,
    ("training_and_evaluation/experiments/settings.py", "architecture"): _PUBLIC,
}


def _sentence_words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the offset of each word that is not used, the word, and what to say instead."""
    # Comments and docstrings go over the ends of lines.
    words = [word for word in re.finditer(r"\S+", text) if word[0] != "#"]
    starts = list(itertools.accumulate((len(word[0]) + 1 for word in words), initial=0))
    joined = " ".join(word[0] for word in words)
    for pattern, instead in SENTENCES.items():
        for match in re.finditer(rf"(?<!\w){pattern}(?!\w)", joined, re.IGNORECASE):
            word = bisect.bisect_right(starts, match.start()) - 1
            yield words[word].start(), match[0], instead


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the line and the name of everything that a file defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _name_words(name: str) -> Iterator[tuple[str, str]]:
    joined = name.strip("_").lower()
    parts = joined.replace("in_place", "").split("_")
    for part in dict.fromkeys(parts):
        if part in NAME_PARTS:
            yield part, NAME_PARTS[part]
    if joined in WHOLE_NAMES:
        yield joined, WHOLE_NAMES[joined]
    if "goes_on" in joined or "go_on" in joined:
        yield "goes_on", "resumes, continues"


def words_of_python(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, word and what to say instead, for names, strings and comments."""
    for line, name in _names(ast.parse(text)):
        for word, instead in _name_words(name):
            yield line, f"{name} ({word})", instead
    strings = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        # A string without a space is a name or a value, not a sentence.
        if token.type in strings and " " in token.string.strip():
            for offset, word, instead in _sentence_words(token.string):
                yield token.start[0] + token.string.count("\n", 0, offset), word, instead


def words_of_text(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, word and what to say instead, for a file of text."""
    for offset, word, instead in _sentence_words(text):
        yield 1 + text.count("\n", 0, offset), word, instead


def find_words(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yields line, word and what to say instead, for one file of the repository."""
    relative = path.resolve().relative_to(ROOT).as_posix()
    find = words_of_python if path.suffix == ".py" else words_of_text
    for line, word, instead in find(path.read_text(encoding="utf-8")):
        allowed = any(
            relative.startswith(where) and word.lower().startswith(what) for where, what in ALLOWED
        )
        if not allowed:
            yield line, word, instead


def all_files(arguments: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yields every Python, Markdown and settings file, or those of some files and folders."""
    for name in arguments or (*FOLDERS, *FILES):
        path = ROOT / name
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        endings = (".py", ".md", ".toml", "")
        yield from (file for file in files if file.suffix in endings and file.is_file())


def main(arguments: list[str]) -> int:
    """Prints what stands where; the exit code is 1 where there is something."""
    count = 0
    for path in all_files(tuple(arguments)):
        for line, word, instead in find_words(path):
            count += 1
            sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: {word} -> {instead}\n")
    sys.stdout.write(f"{count} words\n")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
