"""The graph that is recorded and the pass that walks it back: functions, edges, versions, views, hooks, saved values.

An operation and its arrays come in, and a node comes out; a root and its gradient come in, and gradients of leaves go
out. No rule of any single operation is here.
"""
