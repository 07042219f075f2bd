"""Runs an expression on every engine: draws the inputs, runs, differentiates numerically, compares.

Takes an expression and the kinds of its inputs, and returns each engine's results and the right ones with a tolerance.
The student's engine may live in another process.
"""
