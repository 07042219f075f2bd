"""The subcommands of `autograder` that are about a class.

Arguments of the command line come in, and text for the terminal and an exit status go out.
"""
