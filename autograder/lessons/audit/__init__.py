"""Gates that a lesson must pass: solutions earn everything, stubs earn nothing, every bug costs points.

A lesson comes in, and the findings of its gates go out.
"""
