"""The checks that test cells call: gradients, tangents, functions, and what gradients do not show.

What is to be checked comes in, and a report goes out with points, likely cause and numbers.
"""
