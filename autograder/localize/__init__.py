"""Finds the place of a mistake that the bug bank lacks: the operation, value or path that is wrong by itself.

Takes an expression with wrong gradients and returns the first place where the student's engine is wrong.
"""
