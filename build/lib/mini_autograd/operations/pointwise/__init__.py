"""Operations that treat every element by itself: arithmetic, functions of one number, rounding, comparison.

Arrays of any broadcastable shapes come in, and one array of the broadcast shape goes out.
"""
