"""Quizzes: sealed answers, their marks, and the widget that asks and explains.

Takes a sealed quiz and a student's choices, and returns marks and explanations.
"""
