"""What counts as a notebook: the same for a grader and for those who choose between two files."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder.notebooks import reading
from autograder.notebooks.reading import note_of, problem_of, read_submission

WHOLE = nbformat.writes(new_notebook(cells=[new_markdown_cell("café")]))
FILES = {
    "a notebook": WHOLE.encode(),
    "a byte-order mark": b"\xef\xbb\xbf" + WHOLE.encode(),
    "UTF-16": WHOLE.encode("utf-16"),
    "Latin-1": WHOLE.replace("\\u00e9", "é").encode("latin-1"),
    "cells that are none": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1, {}, null]}',
    "version 3": b'{"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": []}]}',
    "nothing": b"",
    "spaces": b" \n",
    "an AppleDouble file": b"\0\5\x16\7",
    "half a notebook": WHOLE[:40].encode(),
    "a merge conflict": b"{\n<<<<<<< HEAD\n}",
    "a list": b"[]",
    "another format": b'{"cells": []}',
    "no cells": b'{"nbformat": 4}',
    "cells that are no list": b'{"nbformat": 4, "cells": {}}',
    "an archive": b"PK\3\4",
    "a deep list": b"[" * 100_000,
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_would_be_read_is_a_notebook_and_no_other(kind: str) -> None:
    assert problem_of(FILES[kind]) == note_of(read_submission(FILES[kind]), "problem")


@pytest.mark.parametrize("kind", FILES)
def test_a_large_file_is_judged_by_its_beginning(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGE", -1)
    monkeypatch.setattr(json, "loads", None)
    begins_like_one = FILES[kind].decode("utf-16" if kind == "UTF-16" else "latin-1").lstrip("ï»¿").startswith("{")
    assert bool(problem_of(FILES[kind])) == (not begins_like_one)
