"""Grades whole classes: workers, resumption, gradebook, reports."""
