"""Test cells on this side of the sandbox: they run on handles to a submission's objects, under guard.

In come the cells of the source and a sandbox; out comes what each test did.
"""
