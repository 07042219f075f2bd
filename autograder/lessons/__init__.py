"""From the texts of lessons to notebooks, and their audit.

Nothing is imported here, but one import is prevented.
"""

from autograder import without_address_parser as without_address_parser
