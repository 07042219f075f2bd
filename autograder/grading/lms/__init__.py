"""What an LMS hands over: an archive of downloaded submissions comes in, and goes out as folders of the course, one per
student, with a remark for everything that was not taken as it came.
"""
