"""The recorded graph and the backward pass through it: functions, edges, versions, views, hooks, saved values.

An operation and its arrays come in, and a node comes out; a root and its gradient come in, and gradients of leaves come
out. The rules of individual operations are elsewhere.
"""
