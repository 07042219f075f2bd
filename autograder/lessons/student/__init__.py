"""The student's side of a course: delivered lessons, the engine carried from lesson to lesson, and progress.

Built lessons and a student's folder come in; notebooks, and an engine to continue with, go out.
"""
