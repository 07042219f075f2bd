# make lab    open the lessons in JupyterLab, as a student sees them
# make demos  open all demos on one full page, for an audience
# make site   the website of docs, lessons, demos and the API, into .build/site; its lessons open in the browser
# make test   everything that CI checks; long gates of unchanged lessons rest on what they passed before
# make quick  what an edit is most likely to break, in two minutes: no sandbox, no browser, no slow test
# make class  the instructor's whole loop on a pretend class
# make lint   style, types and the contracts of imports
# make lock   newer versions of all packages into the lock files in requirements/
# Each installs its own set of packages first. Each is `python bootstrap.py` with the same word, which works without make too. ARGS="..." is handed on.

SHELL := /bin/bash
PYTHON ?= python3
# The first interpreter that is new enough, $(PYTHON) before all others.
SUITABLE_PYTHON = $(shell for python in $(PYTHON) python3.14 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$python"; break; }; done)

FOUND = $(shell "$(PYTHON)" --version 2>/dev/null)

.PHONY: lab demos site test quick class lint lock clean

lab demos site test quick class lint lock:
	@test -n "$(SUITABLE_PYTHON)" || { \
		echo "This needs Python 3.11 or newer. $(PYTHON) is $(or $(FOUND),not installed)."; \
		echo "Install a newer Python, or name one: make $@ PYTHON=/path/to/python3.12"; exit 1; }
	@$(SUITABLE_PYTHON) bootstrap.py $@ $(ARGS)

clean:
	rm -rf .venv .build
