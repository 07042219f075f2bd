# make lab    open the lessons in JupyterLab, as a student sees them
# make demos  open all demos on one full page, for an audience
# make test   everything that CI checks; long gates of unchanged lessons rest on what they passed before
# make quick  what an edit can break in the first place, in two minutes: no sandbox, no browser, no slow test
# make class  the instructor's whole loop on a pretend class
# Each creates .venv and installs what it needs, the first time and whenever the lock file changes.

SHELL := /bin/bash
VENV := .venv
RUN := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"
PYTHON ?= python3
# The first interpreter that is new enough, $(PYTHON) before all others.
SUITABLE_PYTHON = $(shell for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)
ASKED ?= $(MAKECMDGOALS)
TEST_WORKERS ?= 2
# There is a test or a lesson for each processor; libraries that start threads beside them only make these wait.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# The tests start hundreds of processes; without stored bytecode each would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lab demos test quick class demo packages lint unit lessons quick-unit quick-lessons lock clean

lab: $(VENV)/ready
	@$(RUN) autograder lab $(ARGS)

demos: $(VENV)/ready
	@$(RUN) autograder demos $(ARGS)

class: $(VENV)/ready
	@$(VENV)/bin/python bootstrap.py system bubblewrap
	@$(RUN) autograder class $(ARGS)

# The tests begin with those that mostly wait, for a browser or for a limit of time, and so go beside the gates.
test:
	@$(MAKE) --no-print-directory -j 2 ASKED=test $(VENV)/ready packages
	@$(MAKE) --no-print-directory -j 3 lint lessons unit

quick: $(VENV)/ready
	@$(MAKE) --no-print-directory -j 3 lint quick-lessons quick-unit

packages:
	@test -z "$(SUITABLE_PYTHON)" || $(SUITABLE_PYTHON) bootstrap.py system bubblewrap chromium

lint: $(VENV)/ready
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy
	@$(RUN) lint-imports --no-logo

# The gates of every lesson: solutions pass, stubs and zeros earn nothing.
lessons: $(VENV)/ready
	@$(RUN) autograder build
	@$(RUN) $(ONE_THREAD) autograder audit

quick-lessons: $(VENV)/ready
	@$(RUN) $(ONE_THREAD) autograder audit --changed

# Tests of one file share a server or a sandbox, so they stay together. tests/conftest.py orders the files.
PYTEST := $(RUN) $(ONE_THREAD) pytest -q -n $(TEST_WORKERS) --dist loadfile --no-loadscope-reorder

unit: $(VENV)/ready
	@$(PYTEST) $(ARGS)

quick-unit: $(VENV)/ready
	@$(PYTEST) -m "not slow and not sandbox and not browser and not gpu" $(ARGS)

$(VENV)/ready: requirements.lock pyproject.toml bootstrap.py
	@test -n "$(SUITABLE_PYTHON)" || { \
		echo "This needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1 || true)."; \
		echo "Install a newer Python, or name one: make $(ASKED) PYTHON=/path/to/python3.12"; exit 1; }
	@$(SUITABLE_PYTHON) bootstrap.py environment $(VENV)

# Resolve anew from the floors in pyproject.toml, for a maintainer who wants newer versions.
lock: $(VENV)/ready
	@$(VENV)/bin/python bootstrap.py lock $(VENV)

clean:
	rm -rf $(VENV) .build
