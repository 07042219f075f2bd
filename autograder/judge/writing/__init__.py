"""What a test cell's run means and what is written into the notebook: messages, outputs, points.

What a test did comes in, and the texts and numbers that students and gradebooks see go out.
"""
