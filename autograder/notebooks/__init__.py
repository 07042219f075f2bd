"""What a notebook says about itself: which cells are tests and answers, and who may see which of their lines. Notebooks
of instructors and of students come in, as nbformat nodes or as plain JSON; facts about their cells go out.
"""
