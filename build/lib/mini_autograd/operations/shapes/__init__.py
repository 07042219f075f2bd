"""Operations that move elements and calculate nothing: shape, joining and splitting, indexing, gathering.

An array comes in, and its elements go out in another arrangement.
"""
