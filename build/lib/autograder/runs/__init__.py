"""Runs an expression on every engine: draws the inputs, runs, differentiates numerically, compares.

An expression and the kinds of its inputs come in; what each engine gave goes out, and what is right within which
tolerance. The student's engine may live in another process.
"""
