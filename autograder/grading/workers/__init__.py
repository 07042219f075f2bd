"""Processes that grade submissions side by side, here or on a cluster, and the spool that keeps what they made.

Tasks come in, and results go out, even when a process dies.
"""
