"""The thin classes that nbgrader's configuration names, and `configure`, the one function that names them all.

Nothing heavy is imported here: nbgrader's configuration is read by every nbgrader command and by Formgrader.
"""

from autograder.nbgrader_plugins.configuration import configure

__all__ = ["configure"]
