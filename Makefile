# make demo and make test do everything from a fresh clone: build .venv, install, run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
BASE := $(VENV)/.base
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help demo test lint types unit format docs clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BASE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

# torch first and pinned: a machine that keeps a CPU build of it at hand then needs no other.
$(DEV): $(BASE)
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(BASE) ## Ask a question of the pages that come with askline
	@$(BIN)/askline demo

test: lint types unit ## Everything that must pass: lint, types, tests

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

unit: $(DEV)
	$(BIN)/python -m pytest

format: $(DEV) ## Put the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Write the command-line reference anew
	$(BIN)/python docs/make_reference.py

clean: ## Remove what make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
