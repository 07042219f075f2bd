"""nbgrader's exporter, made to read files as they come: with a byte-order mark, in Latin-1, or broken."""

from __future__ import annotations

import os
from typing import Any

from nbconvert.exporters import NotebookExporter

from autograder.notebooks.reading import LARGEST, NO_FILE, read_submission, stand_in


class SubmissionExporter(NotebookExporter):
    """Notes what was wrong with a file in `metadata.autograder.problem` of the notebook that it writes."""

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> tuple[Any, dict[str, Any]]:
        if os.path.islink(filename) or not os.path.isfile(filename):
            return self.from_notebook_node(stand_in(NO_FILE), resources=resources, **kw)
        return super().from_filename(filename, resources=resources, **kw)

    def from_file(self, file_stream: Any, resources: Any = None, **kw: Any) -> tuple[Any, dict[str, Any]]:
        if not getattr(self.parent, "_sanitizing", True):  # the second pass reads what the first one wrote
            return super().from_file(file_stream, resources=resources, **kw)
        raw = file_stream.buffer.read(LARGEST + 1) if hasattr(file_stream, "buffer") else file_stream.read().encode()
        return self.from_notebook_node(read_submission(raw), resources=resources, **kw)
