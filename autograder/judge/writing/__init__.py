"""What a test cell's run means and what is written into the notebook: messages, outputs, points.

In comes what a test did; out come the texts and numbers that students and gradebooks see.
"""
