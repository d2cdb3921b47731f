# One command each; all of them set up what they need in .venv. PYTHON chooses the interpreter.
PYTHON ?= python3

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TYPES := build/types

# Keeps TensorFlow's notes on starting off the screen; errors are raised in Python.
export TF_CPP_MIN_LOG_LEVEL ?= 3

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help install demo test slow coverage check lint types imports clean

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

install: $(STAMP)  ## Set up .venv with the package (editable) and the tools for development

$(STAMP): pyproject.toml setup.py
	@echo "Setting up $(VENV): the first time this downloads TensorFlow and takes some minutes."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install -e ".[dev]"
	@touch $@

demo: $(STAMP)  ## Forecast a real series, before and after training on it, to runs/demo
	$(BIN)/python -m taylorformer demo --overwrite

test: $(STAMP)  ## Run the quick tests
	$(BIN)/python -m pytest -n auto

slow: $(STAMP)  ## Run the slow tests
	$(BIN)/python -m pytest -n auto -m slow

coverage: $(STAMP)  ## Run the quick tests and show which lines they miss
	$(BIN)/python -m pytest -n auto --cov --cov-report=term-missing:skip-covered

check: lint types imports test  ## Run format check, lint, type and import checks and the quick tests

lint: $(STAMP)  ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

# The folders get their package names in a wheel, so mypy reads one that is unpacked in build/.
# What an earlier build left there would end up in the wheel too.
types: $(STAMP)  ## Check types, on an installed wheel
	@rm -rf build
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir $(TYPES) .
	$(BIN)/python -m pip install --quiet --no-deps --no-index --target $(TYPES)/site $(TYPES)/*.whl
	cd $(TYPES) && MYPYPATH=site "$(CURDIR)/$(BIN)/python" -m mypy -p taylorformer \
		--config-file "$(CURDIR)/pyproject.toml" --cache-dir "$(CURDIR)/.mypy_cache"

imports: types  ## Check floors and circles of imports, on the same wheel
	cd $(TYPES) && PYTHONPATH=site "$(CURDIR)/$(BIN)/lint-imports" \
		--config "$(CURDIR)/pyproject.toml" --no-cache

clean:  ## Remove .venv, builds and caches; what is in runs/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
