# `make dev` to try it, `make test` to check it; everything lives in .venv, nothing outside the clone is touched
# (except by tools/install-services.sh, which adds a missing Debian package when run as root).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
# Tests wait for servers half of their time: one process more than cores.
WORKERS ?= $(shell expr $$(nproc) + 1)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start `penstock` hundreds of times: it is compiled once, even where the shell says not to keep that.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup dev test lint format soak bench docs-generate screenshots requirements services clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.installed  ## create .venv with pinned tools and Penstock itself

# --no-deps: the file names all there is to install. Left to resolve extras of pinned packages by itself, pip takes a
# release that came out after the pin, and then refuses it.
.venv/.requirements: requirements/dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing pinned libraries and tools into .venv: a few minutes, only when requirements/dev.txt changed" >&2
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/dev.txt
	$(BIN)/pip check
	touch $@

.venv/.installed: .venv/.requirements pyproject.toml
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

dev: setup  ## run Penstock on a local SQLite file, with traffic, at http://127.0.0.1:7070
	$(BIN)/penstock dev --demo $(ARGS)

test: lint services  ## lint, then every test; ARGS="tests/cli -k version" narrows it
ifeq ($(strip $(ARGS)),)
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --cov --cov-report= tests/domain
	$(BIN)/coverage report --include='src/penstock/domain/*' --skip-covered --fail-under=100
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --ignore tests/domain
else
	$(BIN)/pytest -n $(WORKERS) --dist loadfile $(ARGS)
endif

lint: setup  ## style, types, boundaries, sizes, generated pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_sizes.py src
	$(BIN)/python tools/generate_docs.py --check

format: setup  ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: setup services  ## the tests that take many minutes
	$(BIN)/pytest -n $(WORKERS) --dist loadfile -m soak --timeout 9000 $(ARGS)

bench: setup services  ## the store against bare SQL, in ten minutes; ARGS=--full for hours
	$(BIN)/python -m bench $(ARGS)

screenshots: setup  ## pictures of every screen, all sizes and themes, into build/screens; ARGS=--docs for docs/screens
	$(BIN)/python tools/screenshots.py $(ARGS)

docs-generate: setup  ## write the reference pages that come from code
	$(BIN)/python tools/generate_docs.py

services: setup  ## install a server the tests need and this machine lacks, if we may
	tools/install-services.sh

requirements: setup  ## compile requirements/dev.txt anew from dev.in
	tools/compile-requirements.sh $(ARGS)

clean:  ## remove everything that was made here
	rm -rf .venv dist build .coverage* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests tools -name __pycache__ -prune -exec rm -rf {} +
