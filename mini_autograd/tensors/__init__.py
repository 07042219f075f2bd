"""The tensor: the class with its methods, and the functions that make, print, save and name tensors.

Data comes in, and tensors that record what is done with them go out.
"""
