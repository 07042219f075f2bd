"""What goes wrong with a class run as a whole, rather than with one submission."""

from __future__ import annotations


class CourseError(Exception):
    """A request that cannot be met, said in one sentence for the instructor."""
