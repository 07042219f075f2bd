"""The bug bank, and the search for the bug that explains wrong numbers.

What a student's engine gave comes in, and the bugs that give the same numbers go out. A bug also comes out as a broken
engine, for lessons and for tests of tests.
"""
