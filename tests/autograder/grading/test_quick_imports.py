"""What our commands import of nbgrader: little, and the rest when it is needed."""

import json
import subprocess
import sys

import pytest

GRADES = "import autograder.grading.run"
NOT_NEEDED = ("arrow.parser", "jupyter_server", "nbclient", "nbconvert", "requests.sessions")
USES = {
    "a name of the package": "import nbgrader\n"
    "print(nbgrader.__version__, callable(nbgrader._jupyter_labextension_paths))",
    "a name of its commands": "import nbgrader.apps\n"
    "print(nbgrader.apps.NbGraderApp.name, 'AutogradeApp' in nbgrader.apps.__all__)",
    "converters": "from nbgrader.converters import Autograde; print(Autograde.__name__)",
    "a module of the preprocessors": "from nbgrader.preprocessors.execute import Execute; print(Execute.__name__)",
    "all plugins": "from nbgrader import plugins; print(plugins.__all__)",
    "everything after the course": (
        "from autograder.grading.course import Course; from nbgrader.apps import NbGraderApp\n"
        "from nbgrader import apps, utils; print(apps.NbGraderApp is NbGraderApp, utils.__name__)"
    ),
}
MISSING = "import nbgrader\ntry: nbgrader.no_such_name\nexcept AttributeError as error: print(error)"


def printed(program: str, *, lazily: bool = True) -> str:
    """What a fresh Python prints for a program, which begins as our commands do if `lazily`."""
    start = "from autograder.grading.quick_imports import quick_imports\nwith quick_imports():\n    import nbformat\n"
    done = subprocess.run([sys.executable, "-c", start * lazily + program], capture_output=True, text=True, check=True)
    return done.stdout


def test_grading_needs_neither_the_server_nor_the_converters() -> None:
    text = printed(f"{GRADES}, json, sys; print(json.dumps([name in sys.modules for name in {NOT_NEEDED}]))")
    assert dict(zip(NOT_NEEDED, json.loads(text), strict=True)) == dict.fromkeys(NOT_NEEDED, False)


@pytest.mark.parametrize("program", [*USES.values(), MISSING], ids=[*USES, "a name that is not there"])
def test_what_was_left_out_is_there_when_it_is_asked_for(program: str) -> None:
    assert printed(program) == printed(program, lazily=False) != ""
