"""nbgrader's settings for the account that owns the course. The course's own nbgrader_config.py comes on top."""

import os
from pathlib import Path

c = get_config()  # noqa: F821  (nbgrader provides it)

c.CourseDirectory.root = str(Path(os.environ.get("CLASS_FOLDER", "/srv/class")) / "course")
if os.environ.get("GRADEBOOK"):
    c.CourseDirectory.db_url = os.environ["GRADEBOOK"]
