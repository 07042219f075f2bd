"""Grades whole classes: workers, resumption, gradebook, reports.

Nothing is imported here, but one import is prevented.

jsonschema offers to check addresses in all the world's letters, and for that builds a parser that takes more than a
second in every process. No notebook's schema asks for such a check, so the processes that grade go without.
"""

from __future__ import annotations

import sys

if "jsonschema" not in sys.modules:
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # an import of it fails, as if not there
