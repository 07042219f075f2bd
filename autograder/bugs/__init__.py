"""The bug bank, and the search for the bug that explains wrong numbers.

Takes the results of a student's engine and returns the bugs that give the same numbers. It also turns a bug into a
broken engine, for lessons and for tests of tests.
"""
