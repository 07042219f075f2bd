"""The tensor: the class with its methods, and the functions that make, print, save and name tensors.

Data come in, and tensors go out that record what is done with them.
"""
