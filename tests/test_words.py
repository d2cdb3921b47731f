"""Names, docstrings, comments, messages and docs use the field's terms and plain English."""

import plain_words
import pytest


def test_no_word_of_a_private_dialect():
    lines = [
        f"{path.relative_to(plain_words.ROOT)}:{line}: {word} -> {instead}"
        for path in plain_words.all_files()
        for line, word, instead in plain_words.find_words(path)
    ]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize(
    "text, line, word",
    [
        ('"""The law of y."""', 1, "law"),
        ('"""Training\n\n    goes\n    on."""', 3, "goes on"),
        ("x = 1  # what `f` gave", 1, "gave"),
        ('raise ValueError(f"the network has {x} layers")', 1, "network"),
        ("def f(place):\n    pass", 1, "place (place)"),
        ("x = 1\nfound = []", 2, "found (found)"),
        ("class Several:\n    pass", 1, "Several (several)"),
        ("def test_training_goes_on():\n    pass", 1, "test_training_goes_on (goes_on)"),
    ],
)
def test_words_are_found_in_names_strings_and_comments(text, line, word):
    assert [match[:2] for match in plain_words.words_of_python(text)] == [(line, word)]


@pytest.mark.parametrize(
    "text",
    [
        '"""Writes in place; a neural network; takes place; its own scale."""',
        "load_own_variables = 1",
        'x["place"]',
        "known_shape = found_rows = 1",
        "def write_in_place():\n    pass",
        'raise ValueError("`architecture` and --architecture are public")',
    ],
)
def test_other_words_are_let_through(text):
    assert list(plain_words.words_of_python(text)) == []


def test_docs_are_read_too():
    assert list(plain_words.words_of_text("a\nits\nlaw")) == [(3, "law", "distribution")]


def test_every_exception_is_needed():
    texts = {
        path.relative_to(plain_words.ROOT).as_posix(): path.read_text(encoding="utf-8").lower()
        for path in plain_words.all_files()
    }
    for where, word in plain_words.ALLOWED:
        assert any(name.startswith(where) and word in text for name, text in texts.items())
