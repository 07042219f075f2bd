"""A class in operation: submissions are collected, graded and answered as they arrive.

In come the exchange's inbound folder and `submitted/`; out go marks, feedback pages in the exchange, and a journal.
"""
