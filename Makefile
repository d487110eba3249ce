# `make run` and `make test` set up all they need from a fresh clone.
#   make run ARGS="--url http://host:8000 --model M --rate 20 --requests 2000"
.DEFAULT_GOAL := help
.PHONY: help run test test-fast lint format engines test-engines campaign bench bench-peers setup clean

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
ARGS ?=
# Processes for the tests: all cores, eight at most; 0 runs them in one process.
JOBS ?= auto
PYTEST := $(VENV)/bin/python -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile
# Rooms whose tests carry out whole commands, campaigns or faults, or start many processes.
SLOW := cli faults procedures studies

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "Python 3.11 or later is needed, this is %d.%d; say which with make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $(STAMP)

setup: $(STAMP) ## Make the environment in .venv

run: $(STAMP) ## Measure a server; with no ARGS, the embedded reference server
	@$(VENV)/bin/inferometer run $(ARGS)

test: $(STAMP) ## Run the tests (real engines only where `make engines` has set them up)
	$(PYTEST) --ignore=tests/engines

test-fast: $(STAMP) ## Run the tests without the slow rooms: whole commands, campaigns, faults
	$(PYTEST) --ignore=tests/engines $(SLOW:%=--ignore=tests/%)

lint: $(STAMP) ## Format check, lint, types
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

format: $(STAMP) ## Format and fix
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

engines: $(STAMP) ## Set up the real engines that the tests measure, in .engines
	$(VENV)/bin/python scripts/engines/setup.py

test-engines: engines ## Measure the real engines
	INFEROMETER_REQUIRE_ENGINES=1 $(VENV)/bin/python -m pytest tests/engines

campaign: engines ## The campaigns of docs/examples: the reference engine, then vLLM (ARGS: one of them); some 80 minutes
	$(VENV)/bin/python -m scripts.campaign $(ARGS)

bench: $(STAMP) ## Measure the instrument itself on this machine
	$(VENV)/bin/python -m benchmarks

bench-peers: $(STAMP) ## Set up the tools that others measure with, in .peers; then: python -m benchmarks peers
	$(VENV)/bin/python scripts/peers/setup.py

clean: ## Remove the environment and caches, keep runs
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
