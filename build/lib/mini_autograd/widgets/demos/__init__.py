"""The demos, one file each: what a demo computes, and the picture that it draws of it.

Settings come in from sliders and buttons, and pictures of real runs go out.
"""
