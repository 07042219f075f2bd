"""Prevents one import that costs every process more than a second, if jsonschema is not there yet.

jsonschema offers to check addresses in all the world's letters, and for that builds a parser. No notebook's schema asks
for such a check, so the processes that build, audit and grade go without.
"""

import sys

if "jsonschema" not in sys.modules:
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # an import of it fails, as if not there
