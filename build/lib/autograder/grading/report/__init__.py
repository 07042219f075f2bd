"""What people see of a graded class: progress, the report page, feedback pages, look-alikes, notices.

Records of submissions come in, and pages and lines of text go out.
"""
