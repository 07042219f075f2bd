"""What `configure` sets, including on top of a course's own settings."""

import json
import re

import pytest
from nbgrader.converters import GenerateAssignment
from traitlets.config import Config
from traitlets.utils.importstring import import_item

from autograder.nbgrader_plugins import configure
from autograder.nbgrader_plugins.configuration import (
    AUTOGRADE,
    COMMENTS,
    FEEDBACK,
    JUDGE,
    MARK_SCHEMES,
    RELEASE,
    SANITIZE,
)

MARK_SCHEMES_OF_NBGRADER = "nbgrader.preprocessors.ClearMarkScheme"


def test_an_unconfigured_course_gets_our_lists() -> None:
    c = Config()
    configure(c)
    assert c.Autograde.autograde_preprocessors == AUTOGRADE
    assert c.Autograde.sanitize_preprocessors == SANITIZE
    assert c.GenerateFeedback.preprocessors == FEEDBACK


def test_the_release_list_is_that_of_nbgrader_and_our_stubs() -> None:
    """nbgrader's own lists are restated in ours; this notices when a new nbgrader changes them."""
    shipped = [
        f"nbgrader.preprocessors.{item.__name__}"
        for item in GenerateAssignment.class_traits()["preprocessors"].default()
    ]
    theirs = [MARK_SCHEMES_OF_NBGRADER if name == MARK_SCHEMES else name for name in RELEASE]
    assert [name for name in theirs if name.startswith("nbgrader")] == shipped


def test_a_course_may_name_our_steps_of_a_release_where_they_once_were() -> None:
    names = {"QuizStubs": "ClearSolutions"}
    for name, neighbor in names.items():
        listed = [f"autograder.lessons.release.{name}", f"nbgrader.preprocessors.{neighbor}"]
        c = Config()
        c.GenerateAssignment.preprocessors = listed
        configure(c)
        assert [step for step in c.GenerateAssignment.preprocessors if step in listed] == listed
        assert import_item(listed[0]) is import_item(f"autograder.nbgrader_plugins.release.{name}")


def test_every_class_that_is_named_is_there() -> None:
    c = Config()
    configure(c)
    named = re.findall(r"autograder(?:\.\w+)+", json.dumps(c))
    assert "autograder.nbgrader_plugins.judge_notebook.JudgeNotebook" in named
    assert all(import_item(name) for name in named)


def test_formgrader_can_show_the_configuration_as_json() -> None:
    c = Config()
    configure(c)
    assert "JudgeNotebook" in json.dumps(c)


def test_configuring_twice_changes_nothing() -> None:
    once, twice = Config(), Config()
    configure(once)
    configure(twice)
    configure(twice)
    assert once == twice


def test_a_list_of_the_course_keeps_its_own_entries_and_their_places() -> None:
    class Mine:
        """A preprocessor that the course has written."""

    c = Config()
    c.Autograde.autograde_preprocessors = [
        Mine,
        "nbgrader.preprocessors.Execute",
        "nbgrader.preprocessors.SaveAutoGrades",
    ]
    configure(c)
    assert c.Autograde.autograde_preprocessors == [Mine, JUDGE, "nbgrader.preprocessors.SaveAutoGrades", COMMENTS]


def test_a_list_that_was_only_looked_at_counts_as_unset() -> None:
    c = Config()
    c.Autograde.autograde_preprocessors  # noqa: B018  traitlets makes a placeholder here
    configure(c)
    assert c.Autograde.autograde_preprocessors == AUTOGRADE


@pytest.mark.parametrize("name", [*RELEASE, *SANITIZE, *AUTOGRADE, *FEEDBACK])
def test_every_name_can_be_imported(name: str) -> None:
    assert isinstance(import_item(name), type)
