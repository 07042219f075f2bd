"""One submission: read, graded directly or by nbgrader's converter, and kept as a result.

The files of a submission come in, and a result and a folder with graded notebooks go out.
"""
