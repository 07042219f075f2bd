"""The first lines of a kernel that a learner starts, in the course's JupyterLab and in a browser tab (PYTHONSTARTUP).

A kernel that has just started, or started again, has imported nothing. An unknown name is explained there too. A Python
without IPython, as in a terminal, also runs these lines.
"""

import sys as _sys
from typing import Any as _Any


def _explain(shell: _Any, kind: _Any, error: _Any, trace: _Any, tb_offset: _Any = None) -> None:
    from autograder.lessons.student.shell import prepare, shown_shortly  # only now: a kernel should start quickly

    prepare(shell)
    shown_shortly(shell, kind, error, trace, tb_offset)


if "IPython" in _sys.modules:
    _sys.modules["IPython"].get_ipython().set_custom_exc((NameError,), _explain)
