"""The checks that test cells call: gradients, tangents, functions, and what gradients do not show.

Takes a student's objects and returns a report with points, the likely cause and numbers.
"""
