"""Products of vectors and matrices.

Arrays whose shapes fit together come in, and their product goes out.
"""
