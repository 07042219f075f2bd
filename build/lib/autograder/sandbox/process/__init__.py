"""The process that a submission runs in: isolated, limited, started, and ended with all that it started.

Limits come in, and a process goes out that can be asked over a wire.
"""
