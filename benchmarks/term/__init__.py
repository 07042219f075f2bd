"""A class from its first to its last week, in small, beside a table of what must come of it that was written by hand:
`python -m benchmarks.term`.
"""
