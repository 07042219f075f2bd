"""What a student has of a course: lessons delivered, the engine carried from lesson to lesson, progress.

Built lessons and a student's folder come in; notebooks, and an engine to go on with, go out.
"""
