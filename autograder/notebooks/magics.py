"""IPython's own syntax in test cells, which are run without an IPython shell: magics that only decorate are dropped,
those such as `%time` are taken off the code they wrap, and the rest are refused.
"""

from __future__ import annotations

import re

from autograder.notebooks.regions import LINE_END

MAGIC = re.compile(r"^(\s*)(%%?|!)\s*(\w*)(.*)$")
DECORATION = frozenset(
    ("matplotlib", "config", "load_ext", "reload_ext", "autoreload", "precision", "pylab", "who", "whos")
)
TRANSPARENT = frozenset({"time", "timeit", "capture", "prun"})


def plain_python(source: str) -> tuple[str, bool]:
    """The source as Python, with the line numbers kept, and whether a closing semicolon silences the last value."""
    silent = source.rstrip().endswith(";")
    if "%" not in source and "!" not in source:
        return source, silent
    lines = [_plain_line(line, number) for number, line in enumerate(LINE_END.split(source))]
    return "\n".join(lines), silent


def _plain_line(line: str, number: int) -> str:
    found = MAGIC.match(line)
    if not found or (found[2] == "%" and not found[3]):
        return line
    indent, sign, name, rest = found.groups()
    if sign == "%%" and name in TRANSPARENT and not line.strip().startswith("%%%"):
        return ""
    if name in DECORATION and sign != "!":
        return f"{indent}pass"
    if sign == "%" and name in TRANSPARENT:
        return f"{indent}{rest.strip()}"
    if sign == "!" or sign == "%":
        return f"{indent}raise RuntimeError('a test cell cannot use {sign}{name} when it is graded')"
    return line
