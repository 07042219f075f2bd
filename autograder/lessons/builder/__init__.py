"""From a lesson's text to nbgrader's source notebook, with quizzes sealed and engines attached.

A text comes in, and a notebook goes out, or a message that says which line breaks which rule.
"""
