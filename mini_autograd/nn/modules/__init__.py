"""Modules: the base class, containers, layers and losses.

Numbers of features come in, and an object comes out that knows its parameters and maps tensors to tensors.
"""
