# Each target does all its set-up on a machine that has Python 3.11+ and nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000

.PHONY: demo test check docs docs-serve stores pages pictures peers fleet matrix conformance clean

demo: $(VENV)/.serve
	$(BIN)/python -m bridge demo --port $(PORT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not peers and not fleet" $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m pytest tests/test_layers.py

pages: $(VENV)/.dev
	$(BIN)/python -m pytest -m pages tests/pages tests/console $(ARGS)
	$(BIN)/python -m tests.pages.newcomer

pictures: $(VENV)/.dev
	$(BIN)/python -m tests.pages.pictures

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

peers: $(VENV)/.dev
	$(BIN)/python -m tests.peers install
	$(BIN)/python -m pytest -m peers $(ARGS)

fleet: $(VENV)/.dev
	$(BIN)/python -m tests.peers install
	$(BIN)/python -m pytest -m fleet $(ARGS)

stores: $(VENV)/.dev
	$(BIN)/python -m pytest tests/behaviours -m "not peers and not fleet" --default-store=sqlite $(ARGS)
	$(BIN)/python -m pytest tests/behaviours -m "not peers and not fleet" --default-store=redis $(ARGS)

matrix: $(VENV)/.dev
	$(BIN)/python -m tests.peers install
	$(BIN)/python -m tests.matrix $(ARGS)

conformance: $(VENV)/.dev
	$(BIN)/python -m tests.conformance $(ARGS)

$(VENV)/.serve: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[serve]'
	touch $@

$(VENV)/.dev: $(VENV)/.serve
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
