"""Operations along dimensions: sums, extremes, norms, cumulative sums, sorting, softmax, diagonals.

An array and dimensions come in, and results for each line of elements go out.
"""
