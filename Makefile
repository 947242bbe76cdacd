# Every target works in a fresh clone: it creates .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := requirements/constraints.txt
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
BASE := $(VENV)/.base
DEV := $(VENV)/.dev
OUT ?= report
TORCH := torch==2.13.0
CLIENTS := $(VENV)/clients/.made
SPARK := $(VENV)/spark/.made
INTEGRATIONS := arrow haystack langchain litellm llama_index mcp pyterrier rerankers

.DEFAULT_GOAL := help
.PHONY: help demo check test lint types fast unit fuzz test-clients test-integrations test-spark browser proxy java format docs notebook docs-site lock dist reproduce clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BASE): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

# torch comes first and pinned, so that pip prefers a CPU build from a local index or --find-links.
$(DEV): $(BASE)
	$(PIP) $(TORCH)
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(BASE) ## Answer a question from the pages that come with askline
	@$(BIN)/askline demo

check: lint types fast ## Lint, types and the fast tests: about a minute

test: lint types unit ## Lint, types and all tests

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/mypy

# One process per test worker and one thread per process: the workers use all cores already.
fast: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m 'not slow' -n auto

unit: $(DEV) browser proxy
	$(BIN)/python -m pytest

# The tests of the web page need chromium. It is installed only as root on Debian.
browser:
	@if command -v chromium >/dev/null; then \
		true; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) >/dev/null 2>&1; then \
		echo "Installed chromium for the tests of the web page."; \
	else \
		echo "chromium is missing and cannot be installed here: the tests of the web page are skipped."; \
	fi

# The test of several replicas needs haproxy, also installed only as root on Debian.
proxy:
	@if command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ]; then \
		true; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && apt-get install -qq -y --no-install-recommends haproxy) >/dev/null 2>&1; then \
		echo "Installed haproxy for the test of several replicas."; \
	else \
		echo "haproxy is missing and cannot be installed here: the test of several replicas is skipped."; \
	fi

# The test uses one module of langchain-community, which needs only these packages.
$(CLIENTS): $(DEV)
	$(PYTHON) -m venv $(VENV)/clients
	$(VENV)/clients/bin/pip install --quiet --disable-pip-version-check langchain-core requests
	$(VENV)/clients/bin/pip install --quiet --disable-pip-version-check --no-deps langchain-community
	@touch $@

# The readers take half of the time, the service most of the rest.
FUZZ_SECONDS ?= 600
fuzz: $(DEV) ## Fuzz the readers, the splitter and the service for ten minutes: FUZZ_SECONDS=600
	$(BIN)/python -m research.fuzzing.readers --seconds $$(($(FUZZ_SECONDS) / 2)) --seed $$(date +%s)
	$(BIN)/python -m research.fuzzing.service --seconds $$(($(FUZZ_SECONDS) * 4 / 10))

test-clients: $(CLIENTS) ## Test clients that are too large for the test environment (LangChain)
	ASKLINE_CLIENTS=$(VENV)/clients/bin/python $(BIN)/python -m pytest tests/serving/test_langchain.py

# Each integration has an environment of its own, with its extra and the packages that its tests use.
TEST_PACKAGES_arrow := datasets duckdb pandas polars
TEST_PACKAGES_langchain := langchain-classic langchain-tests
TEST_PACKAGES_litellm := dspy httpx litellm
EXAMPLE := tests/examples/test_examples.py::test_an_example_prints_what_it_shows
EXAMPLES_arrow := '$(EXAMPLE)[dataframes]'
EXAMPLES_mcp := '$(EXAMPLE)[mcp_client]'
EXTRA_litellm := serve
EXTRA_llama_index := llama-index
PYTEST_OPTIONS_langchain := -o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function
test-integrations: $(INTEGRATIONS:%=test-integration-%) ## Test the integrations with the real packages

# Without this, make would delete the file after the tests and install everything again next time.
.PRECIOUS: $(VENV)/integrations/%/.made
$(VENV)/integrations/%/.made: pyproject.toml requirements/integrations.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --constraint requirements/integrations.txt \
		pytest $(TEST_PACKAGES_$*) --editable '.[$(or $(EXTRA_$*),$*)]'
	@touch $@

# The conformance kit of MCP needs Node 22, whose package is downloaded too, and opens addresses only:
# supergateway gives a server over stdio an address.
test-integration-mcp: export ASKLINE_MCP_CONFORMANCE = $(VENV)/integrations/conformance/node_modules
test-integration-mcp: $(VENV)/integrations/conformance/.made
$(VENV)/integrations/conformance/.made: requirements/conformance.json
	@mkdir -p $(@D)
	@if command -v npm >/dev/null; then \
		cp $< $(@D)/package.json && npm install --prefix $(@D) --silent --no-audit --no-fund; \
	else \
		echo "npm is missing: the conformance tests of MCP are skipped."; \
	fi
	@touch $@

test-integration-%: $(VENV)/integrations/%/.made
	$(<D)/bin/python -m pytest -q $(PYTEST_OPTIONS_$*) tests/integrations/test_$*.py $(EXAMPLES_$*)

# Spark needs Java 17 or later. It is installed only as root on Debian.
java:
	@if command -v java >/dev/null; then \
		true; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		(apt-get update -qq && apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless) >/dev/null 2>&1; then \
		echo "Installed OpenJDK 17 for the tests on Spark."; \
	else \
		echo "Java is missing and cannot be installed here: install Java 17, then run this again."; \
		exit 1; \
	fi

$(SPARK): pyproject.toml requirements/spark.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --constraint requirements/spark.txt \
		pytest --editable '.[spark,eval]'
	@touch $@

test-spark: java $(SPARK) ## Test the integration with Spark on a local cluster: about five minutes
	$(VENV)/spark/bin/python -m pytest -q tests/integrations/test_spark.py
	$(VENV)/spark/bin/python -m pytest -q tests/examples/test_examples.py -k spark_rank

format: $(DEV) ## Fix and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Generate the references, the results page and the README table
	$(BIN)/python docs/make_reference.py
	$(BIN)/python -m research.make_results

# Its pictures show times, so run it on a machine that is otherwise idle.
notebook: $(DEV) ## Execute the notebook of the examples and store its outputs
	$(BIN)/python docs/make_notebook.py

docs-site: $(DEV) ## Build the documentation site in build/site
	$(BIN)/python docs/make_site.py

# A new environment without constraints, so that each package gets its newest version.
lock: ## Write the newest versions of all packages to requirements/
	$(PYTHON) -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check $(TORCH) '.[dev]'
	$(VENV)/lock/bin/python requirements/lock.py requirements/constraints.txt
	$(PYTHON) -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check pytest \
		$(foreach name,$(INTEGRATIONS),$(TEST_PACKAGES_$(name)) '.[$(or $(EXTRA_$(name)),$(name))]')
	$(VENV)/lock/bin/python requirements/lock.py requirements/integrations.txt
	$(PYTHON) -m venv --clear $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check pytest '.[spark,eval]'
	$(VENV)/lock/bin/python requirements/lock.py requirements/spark.txt
	rm -rf $(VENV)/lock

dist: $(BASE) ## Build the wheel and the source distribution in dist/
	$(PIP) 'hatchling>=1.25'
	$(BIN)/python -m hatchling build

reproduce: $(DEV) ## Reproduce the tables of the papers: OUT=report ARGS="--only cosinet"
	$(BIN)/python -m research.reproduce --out $(OUT) $(ARGS)

clean: ## Remove everything that make created
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
