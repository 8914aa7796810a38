# `make reports` and `make test` do everything on a fresh machine with Python 3.11+ and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
JOBS ?= 2

.PHONY: reports test test-slow clean help

reports: $(READY)  ## regenerate reports/ (quick when nothing changed)
	@$(BIN)/verify report --out reports

test: $(READY)  ## style, types and the test suite
	$(BIN)/ruff check verify proofs tests
	$(BIN)/ruff format --check verify proofs tests
	$(BIN)/mypy
	$(BIN)/pytest -n $(JOBS) -q

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -n $(JOBS) -q -m slow

$(READY): .pins.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: $(PYTHON) is older than Python 3.11; run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Creating $(VENV) from pinned versions (.pins.txt) ..."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on --require-hashes -r .pins.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $(READY)

clean:  ## remove the environment and caches (never reports/)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' Makefile
