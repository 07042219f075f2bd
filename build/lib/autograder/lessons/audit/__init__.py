"""Gates that a lesson must pass: solutions earn everything, stubs earn nothing, every bug costs points.

A lesson comes in, and what its tests let through goes out.
"""
