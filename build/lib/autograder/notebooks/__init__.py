"""What a notebook says of itself: which cells are tests and answers, and which of their lines are for whom. Notebooks
of instructors and of students come in, as nbformat's nodes or as plain JSON; facts about their cells go out.
"""
