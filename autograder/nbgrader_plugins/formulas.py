"""Formulas as MathML, which browsers show without a script or a network.

Needs the package latex2mathml. If it is missing, or does not know a command, the formula stays as it was written.
"""

from __future__ import annotations

import importlib
import re
from html import escape

DELIMITERS = {"inline": ("$", "$"), "block": ("$$", "$$")}
# The converter knows tables, but not these names for them.
ALIGNED = re.compile(r"\\(begin|end)\{(aligned|align\*?|split|gathered|cases)\}")
AS_TABLE = {"begin": r"\begin{array}{rl}", "end": r"\end{array}"}


def formula(source: str, display: str) -> str:
    """A TeX formula as MathML; `display` is "inline" or "block"."""
    try:
        converter = importlib.import_module("latex2mathml.converter")
        return converter.convert(ALIGNED.sub(lambda match: AS_TABLE[match[1]], source), display=display)
    except Exception:  # no converter, or any error that it raises for a formula that it does not understand
        before, after = DELIMITERS[display]
        return f"{before}{escape(source, quote=False)}{after}"
