"""Arrays without gradients: devices, sizes, random generators, long chains computed block by block.

Numbers, shapes and arrays come in, and arrays go out. Nothing here knows of tensors or graphs.
"""
