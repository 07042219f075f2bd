"""What learners get wrong in a lesson: the list beside its text, and a solved lesson with one of these mistakes."""
