"""No check of a lesson needs another check: students skip those that they have passed."""

from pathlib import Path

import pytest

from autograder.lessons.builder.names import missing_names
from autograder.lessons.builder.notebook import assemble
from autograder.notebooks.cells import grade_id, is_test
from autograder.notebooks.statements import bound_names, parse

LESSONS = sorted((Path(__file__).parents[2] / "course" / "lessons").glob("*/[0-9]*.py"))


@pytest.mark.parametrize("text", LESSONS, ids=lambda text: text.stem)
def test_no_check_needs_a_name_that_only_other_checks_define(text):
    code = [cell for cell in assemble(text).cells if cell.cell_type == "code"]
    checks = {grade_id(cell): cell.source for cell in code if is_test(cell)}
    given = bound_names(statement for cell in code if not is_test(cell) for statement in parse(cell.source))
    of_checks = bound_names(statement for source in checks.values() for statement in parse(source))
    needed = {name: of_checks & set(missing_names(source, given)) for name, source in checks.items()}
    assert not {name: missing for name, missing in needed.items() if missing}
