"""Lessons: built from their texts, audited, and delivered to students.

A lesson's text comes in; a notebook, a verdict on its tests, or a folder for a student goes out.
"""
