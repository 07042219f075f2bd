"""The half of the sandbox that runs inside it, beside the student's code, and the wire format that both halves share.

Needs the standard library, NumPy, IPython and cloudpickle, nothing of this project. Nothing in here decides a mark: a
student may replace any of it at run time, and gains only the freedom to send other bytes.
"""
