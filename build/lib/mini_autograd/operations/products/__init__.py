"""Products of vectors and matrices, and what is computed from a matrix as a whole.

Arrays come in whose shapes have to fit, and their product goes out.
"""
