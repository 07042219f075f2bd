"""What a check shows: the report with its text and HTML, the picture of a wrong gradient, the points.

Findings come in, and a card goes out that a notebook shows.
"""
