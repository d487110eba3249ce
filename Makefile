# `make run` and `make test` set up all they need from a fresh clone.
#   make run ARGS="--url http://host:8000 --model M --rate 20 --requests 2000"
.DEFAULT_GOAL := help
.PHONY: help run test test-fast lint format fuzz floors lock audit release engines test-engines test-trackers test-ray campaign bench soak bench-peers \
	setup clean

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
ARGS ?=
# Processes for the tests: all cores, eight at most; 0 runs them in one process.
JOBS ?= auto
PYTEST := $(VENV)/bin/python -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile
# Rooms whose tests carry out whole commands, campaigns or faults, or start many processes.
SLOW := cli faults procedures studies
# Every version is pinned by hash in requirements/, which `make lock` writes from pyproject.toml.
LOCKED := pip install --quiet --disable-pip-version-check --require-hashes --no-deps
EDITABLE := pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
COMPILE = $(VENV)/bin/uv pip compile --quiet --no-header --generate-hashes --python-version 3.11 $(if $(UPGRADE),--upgrade)
# Tests that touch each dependency, for its lowest version.
FLOOR_TESTS := protocol dialects journal measure/test_stats.py plan/test_plan_parse.py plan/test_plan_saved.py \
	telemetry/test_scrape_record.py telemetry/test_metric_statistics.py workload/test_tokenizer_loading.py \
	workload/test_prompts.py workload/test_nonces.py report/test_card_picture.py server/test_openai_bodies.py \
	workload/test_write_workload.py::test_a_changed_header_is_found report/test_report_files.py \
	judge/test_comparison.py cli/test_commands.py cli/test_end_to_end.py
FUZZ_S ?= 3600

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml Makefile requirements/dev.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else "Python 3.11 or later is needed, this is %d.%d; say which with make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m $(LOCKED) --requirement requirements/dev.txt
	$(VENV)/bin/python -m $(EDITABLE)
	@# Or each of a run's processes would compile the package anew where Python may write no bytecode.
	$(VENV)/bin/python -m compileall -q src benchmarks
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

fuzz: $(STAMP) ## Fuzz every reader, an hour together (FUZZ_S: seconds); findings stay in fuzz/found
	$(VENV)/bin/python -m fuzz --seconds $(FUZZ_S) $(ARGS)

.floors/.installed: pyproject.toml Makefile requirements/floors.txt
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info[:2] == (3, 11) else "The lowest versions are for the lowest Python: make floors PYTHON=python3.11")'
	$(PYTHON) -m venv .floors
	.floors/bin/python -m $(LOCKED) --requirement requirements/floors.txt
	.floors/bin/python -m $(EDITABLE)
	@touch $@

floors: .floors/.installed ## Test with the lowest versions that pyproject.toml allows, in .floors (Python 3.11)
	.floors/bin/python -m pytest --numprocesses $(JOBS) --maxprocesses 8 --dist loadfile $(FLOOR_TESTS:%=tests/%)

lock: $(STAMP) ## Write requirements/ from pyproject.toml (UPGRADE=1: newest versions)
	$(COMPILE) --universal pyproject.toml --group dev --output-file requirements/dev.txt
	$(COMPILE) --universal pyproject.toml --constraints requirements/dev.txt --output-file requirements/runtime.txt
	$(COMPILE) --universal --group release --output-file requirements/release.txt
	mkdir -p build
	$(COMPILE) --only-binary :all: --resolution lowest-direct pyproject.toml --output-file build/lowest.txt
	$(COMPILE) --only-binary :all: pyproject.toml --group dev --constraints build/lowest.txt --no-annotate \
		--output-file requirements/floors.txt

.release/.installed: requirements/release.txt Makefile
	$(PYTHON) -m venv .release
	.release/bin/python -m $(LOCKED) --requirement requirements/release.txt
	@touch $@

audit: .release/.installed ## Look for known vulnerabilities in what is pinned; asks PyPI
	.release/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements/dev.txt
	.release/bin/pip-audit --strict --require-hashes --disable-pip --requirement requirements/release.txt

release: $(STAMP) .release/.installed ## Build wheel, sdist, SBOM (CycloneDX) and their SHA-256 in dist/
	$(VENV)/bin/python -m scripts.release

engines: $(STAMP) ## Set up the real engines that the tests measure, in .engines
	$(VENV)/bin/python scripts/engines/setup.py

test-engines: engines ## Measure the real engines
	INFEROMETER_REQUIRE_ENGINES=1 $(VENV)/bin/python -m pytest tests/engines

.trackers/.installed: pyproject.toml Makefile requirements/dev.txt
	$(PYTHON) -m venv .trackers
	.trackers/bin/python -m $(LOCKED) --requirement requirements/dev.txt
	.trackers/bin/python -m $(EDITABLE)
	.trackers/bin/python -m pip install --quiet --disable-pip-version-check '.[mlflow,wandb]' sqlalchemy alembic pandas
	.trackers/bin/python -m $(EDITABLE)
	@touch $@

test-trackers: .trackers/.installed ## Test the exports to MLflow and W&B, whose libraries this installs in .trackers; takes a while
	.trackers/bin/python -m pytest -rs tests/exports

.ray/.installed: pyproject.toml Makefile requirements/dev.txt
	$(PYTHON) -m venv .ray
	.ray/bin/python -m $(LOCKED) --requirement requirements/dev.txt
	.ray/bin/python -m $(EDITABLE)
	.ray/bin/python -m pip install --quiet --disable-pip-version-check '.[ray]' 'ray[default]'
	.ray/bin/python -m $(EDITABLE)
	@touch $@

test-ray: .ray/.installed ## Test load hosts on a Ray cluster of several nodes, for which this installs Ray in .ray
	.ray/bin/python -m pytest -rs tests/cluster/test_ray_hosts.py

campaign: engines ## The campaigns of docs/examples: the reference engine, then vLLM (ARGS: one of them); some 85 minutes
	$(VENV)/bin/python -m scripts.campaign $(ARGS)

bench: $(STAMP) ## Measure the instrument itself on this machine
	$(VENV)/bin/python -m benchmarks

soak: $(STAMP) ## An hour at 20,000 tokens a second: memory, open files and lateness of all processes (ARGS)
	$(VENV)/bin/python -m benchmarks.soak $(ARGS)

bench-peers: $(STAMP) ## Set up the tools that others measure with, in .peers; then: python -m benchmarks peers
	$(VENV)/bin/python scripts/peers/setup.py

clean: ## Remove the environment and caches, keep runs
	rm -rf $(VENV) .floors .ray .release .trackers .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
