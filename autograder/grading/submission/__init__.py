"""One submission: read, taken through the steps of grading, and kept as a result.

The files of a submission come in, and a result and a folder with graded notebooks go out.
"""
