"""A pretend class for demonstrations: students made from a lesson's solution with one mistake each.

A lesson comes in, and a course with submissions goes out.
"""
