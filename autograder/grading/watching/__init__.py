"""A class in operation: submissions are collected, graded and answered as they arrive.

The exchange's inbound folder and `submitted/` come in; marks, feedback pages in the exchange, and a journal go out.
"""
