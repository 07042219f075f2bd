"""Quizzes: sealed answers, their marks, and the widget that asks and explains.

A sealed quiz and a student's choices come in, and marks and explanations go out.
"""
