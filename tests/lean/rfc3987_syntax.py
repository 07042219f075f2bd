"""Stands in the way of the package of this name, for the processes that tests start: see tests/conftest.py."""

raise ImportError("the tests do without it")
