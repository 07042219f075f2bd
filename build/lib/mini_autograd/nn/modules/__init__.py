"""Modules: the base class, containers, and the layers and losses that are made of them.

Numbers of features come in, and an object goes out that knows its parameters and maps tensors to tensors.
"""
