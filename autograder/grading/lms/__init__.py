"""Imports what an LMS hands over: an archive of downloaded submissions comes in, and folders of the course go out, one
per student, with a remark for everything that was not taken as it was.
"""
