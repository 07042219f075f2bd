"""Grading measured beside nbgrader and otter-grader, on the same submissions: `python -m benchmarks.grading`.

It imports the standard library and nbformat; every way of grading is a command, run in a process tree of its own whose
processor time and memory are counted whole.
"""
