"""Reads assignments from nbgrader's gradebook, writes marks into it, and exports them.

Results of submissions come in, and rows of the gradebook go out.
"""
