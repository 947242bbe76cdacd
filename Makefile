# make demo and make test do everything from a fresh clone: build .venv, install, run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
BASE := $(VENV)/.base
DEV := $(VENV)/.dev
OUT ?= report
CLIENTS := $(VENV)/clients/.made

.DEFAULT_GOAL := help
.PHONY: help demo test test-clients browser lint types unit format docs reproduce clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

unit: $(DEV) browser
	$(BIN)/python -m pytest

# The page is tested in Debian's chromium. It is installed where that can be done without asking.
browser:
	@if command -v chromium >/dev/null; then \
		true; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) >/dev/null 2>&1; then \
		echo "Installed chromium for the tests of the page."; \
	else \
		echo "No chromium, and it cannot be installed here: the tests of the page will be skipped."; \
	fi

# Of langchain-community one module is used, which needs no more than these.
$(CLIENTS): $(DEV)
	$(PYTHON) -m venv $(VENV)/clients
	$(VENV)/clients/bin/pip install --quiet --disable-pip-version-check langchain-core requests
	$(VENV)/clients/bin/pip install --quiet --disable-pip-version-check --no-deps langchain-community
	@touch $@

test-clients: $(CLIENTS) ## Clients too heavy for the environment of the tests: LangChain's
	ASKLINE_CLIENTS=$(VENV)/clients/bin/python $(BIN)/python -m pytest tests/serving/test_langchain.py

format: $(DEV) ## Put the code in the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Generate the references, the results page and the README table
	$(BIN)/python docs/make_reference.py
	$(BIN)/python -m research.make_results

reproduce: $(DEV) ## Set every table of the papers beside our figures: OUT=report ARGS="--only cosinet"
	$(BIN)/python -m research.reproduce --out $(OUT) $(ARGS)

clean: ## Remove what make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
