"""Reads what students hand in. A file that is not a notebook becomes an empty notebook that says so, and is graded.

So a broken submission gets a mark, feedback and a reason, in nbgrader's own commands too, and affects no other
submission.
"""

from __future__ import annotations

import json
import re
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from autograder.notebooks.cells import marks

HALF = "\\ud"  # how JSON writes half of a character, or a whole one in two halves
ENCODINGS = ("utf-8-sig", "utf-16", "latin-1")
CONFLICT = re.compile(rb"^<{7}(?= )", re.MULTILINE)  # as git writes it
LARGEST = 120_000_000  # more than nbgrader lets a student hand in; most of it is outputs, which are thrown away
LARGE = 10_000_000  # bytes; more could fill the memory of the process that only asks for `problem_of`
SPACE = b"\xef\xbb\xbf\xff\xfe \t\r\n"  # byte-order marks, too
OTHER_JSON = "The file is JSON, but not a Jupyter notebook."
NO_CELLS = "The file has no list of cells, so it is not a Jupyter notebook."
NO_FILE = "It is a link or a special file, not a notebook."
NOT_ISOLATED = "none, because the instructor turned it off"  # how a submission was isolated, as it is noted
UNPROTECTED = "Graded without isolation (--unsafe-no-sandbox): submissions could have changed anything."
NEW_CELL = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


class UnreadableError(ValueError):
    """Why a submitted file is not a notebook, in words for its author."""


def read_submission(raw: bytes) -> NotebookNode:
    """The notebook in a submitted file, or a stand-in that says why there is none."""
    try:
        return _notebook(_parsed(raw))
    except UnreadableError as error:
        return stand_in(str(error))


def problem_of(raw: bytes) -> str:
    """Why a submitted file is not a notebook, or nothing if it is one. This is quick for every file: it looks neither
    into cells nor to the end of a large file.
    """
    if len(raw) > LARGE:
        return "" if raw[:100].replace(b"\0", b"").lstrip(SPACE).startswith(b"{") else "The file is not valid JSON."
    try:
        content = _parsed(raw)
    except UnreadableError as error:
        return str(error)
    if not _is_like_a_notebook(content):
        return OTHER_JSON
    return "" if isinstance(content.get("cells", content.get("worksheets")), list) else NO_CELLS


def note_of(notebook: NotebookNode, name: str) -> str:
    """What was noted on a graded notebook: `problem` (why it stands in for one that cannot be read), `isolation`."""
    note = notebook.metadata.get("autograder")
    return str(note.get(name, "")) if isinstance(note, dict) else ""


def _parsed(raw: bytes) -> Any:
    if len(raw) > LARGEST:
        raise UnreadableError(f"The file is larger than {LARGEST // 1_000_000} MB.")
    if not raw.strip():
        raise UnreadableError("The file is empty.")
    reason = ""
    for encoding in ENCODINGS:
        try:
            text = raw.decode(encoding)
            return json.loads(text) if HALF not in text.lower() else _whole_characters(json.loads(text))
        except UnicodeError:
            continue
        except (ValueError, RecursionError) as error:
            reason = reason or str(error)
    if conflict := CONFLICT.search(raw):
        line = raw[: conflict.start()].count(b"\n") + 1
        raise UnreadableError(
            f"The file is not valid JSON: line {line} begins a merge conflict ({conflict[0].decode()})."
        )
    raise UnreadableError(f"The file is not valid JSON: {reason}.")


def _whole_characters(content: Any) -> Any:
    """Replace half characters, which an editor may leave of an emoji, with marks: they cannot be written to a file."""
    text = json.dumps(content, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _is_like_a_notebook(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("nbformat"), int)


def _notebook(content: Any) -> NotebookNode:
    if not _is_like_a_notebook(content):
        raise UnreadableError(OTHER_JSON)
    try:
        if content["nbformat"] == 4:
            notebook = nbformat.v4.to_notebook(content)
        else:
            notebook = nbformat.reads(json.dumps(content), as_version=4)
        nbformat.validate(notebook)
    except Exception:  # whatever a malformed notebook provokes in nbformat's readers
        notebook = _salvaged(content)
    notebook.metadata.pop("autograder", None)
    if not isinstance(notebook.metadata.get("language", ""), str):
        del notebook.metadata["language"]  # nbconvert expects a text
    return notebook


def _salvaged(content: dict[str, Any]) -> NotebookNode:
    """A valid notebook made from the cells that are still valid."""
    cells = content.get("cells")
    if not isinstance(cells, list):
        raise UnreadableError(NO_CELLS)
    notebook = new_notebook()
    for cell in cells:
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if not isinstance(kind, str) or kind not in NEW_CELL:
            continue
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        text = "".join(line for line in lines if isinstance(line, str))
        kept = {"nbgrader": NotebookNode(marks(cell))} if marks(cell) else {}
        notebook.cells.append(NEW_CELL[kind](text, metadata=NotebookNode(kept)))
    return notebook


def stand_in(problem: str) -> NotebookNode:
    """A notebook in place of one that cannot be read."""
    notebook = new_notebook(cells=[new_markdown_cell(f"**This submission could not be read.** {problem}")])
    notebook.metadata["autograder"] = {"problem": problem}
    return notebook
