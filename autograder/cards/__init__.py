"""What a check shows: the report with its text and HTML, the picture of a wrong gradient, the points.

Takes findings and returns a card for a notebook to show.
"""
