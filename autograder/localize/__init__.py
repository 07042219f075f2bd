"""Finds the place of a mistake that is in no bank: the operation, the value or the path that is wrong by itself.

An expression with wrong gradients comes in, and the first place goes out where the student's engine is wrong.
"""
