"""Grades whole classes: workers, resumption, gradebook, reports.

Nothing is imported here, but one import is prevented.
"""

from autograder import without_address_parser as without_address_parser
