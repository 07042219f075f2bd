"""Test cells on this side of the sandbox: they run on handles to a submission's objects, under guard.

The cells of the source and a sandbox come in, and what each test did goes out.
"""
