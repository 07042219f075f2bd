"""Operations along dimensions: sums, extremes, norms, cumulative sums, sorting, softmax, diagonals.

An array and dimensions come in; what each line of elements has in common goes out.
"""
