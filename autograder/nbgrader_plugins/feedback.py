"""Feedback pages: one HTML file that needs no network, runs no script, and shows no hidden test."""

from __future__ import annotations

import re
from types import CodeType
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.preprocessors import ClearHiddenTests
from traitlets import Bool, List

from autograder.notebooks.regions import MARK_SCHEME, without

# A browser that reads this loads nothing and runs nothing, whatever else the page says.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
POLICY_TAG = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>'
ABOUT_ATTEMPT = "<!-- about this attempt -->"  # in the template: where a page says what only its release knows
SCRIPT = re.compile(r"<script\b.*?</script\s*>\s*", re.DOTALL | re.IGNORECASE)
HEAD = re.compile(r"<head\b[^>]*>", re.IGNORECASE)


class CompiledTemplates(BytecodeCache):
    """Templates that were compiled in this process. nbgrader makes a new exporter for every notebook."""

    def __init__(self) -> None:
        self.codes: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self.codes[bucket.key, bucket.checksum] = bucket.code


COMPILED = CompiledTemplates()


class FeedbackExporter(HTMLExporter):
    """nbconvert's HTML without scripts: the formula renderer of nbgrader's template would come from the internet."""

    optimistic_validation = Bool(True, help="Validate the notebook after the last step only.").tag(config=True)

    def _create_environment(self) -> Environment:
        environment = super()._create_environment()
        environment.bytecode_cache = COMPILED
        return environment

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **kw: Any) -> tuple[Any, dict[str, Any]]:
        html, resources = super().from_notebook_node(nb, resources, **kw)
        html = SCRIPT.sub("", html)
        return HEAD.sub(lambda head: head[0] + POLICY_TAG, html, count=1), resources


class HideHiddenTests(ClearHiddenTests):
    """Removes hidden tests from test cells and mark schemes from questions: there may be another attempt. A student's
    cell that happens to contain the marker is left as it is.
    """

    # Of no use here; without it nbgrader warns at each page, since the exporter sets it for all preprocessors.
    display_data_priority: Any = List(config=True)

    def preprocess_cell(self, cell: NotebookNode, resources: Any, cell_index: int) -> tuple[NotebookNode, Any]:
        if utils.is_grade(cell) and not utils.is_solution(cell):
            self._remove_hidden_test_region(cell)
        elif utils.is_locked(cell) and not utils.is_task(cell):
            cell.source = without(MARK_SCHEME, cell.source)
        return cell, resources
