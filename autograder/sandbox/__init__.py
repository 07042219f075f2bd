"""Runs a notebook's cells isolated from everything else and answers questions about their objects with plain values;
knows nothing of marks.

Nothing is imported here, so that asking whether there is a sandbox does not wait for NumPy.
"""
