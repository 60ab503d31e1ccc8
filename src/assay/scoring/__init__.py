"""Grading: evaluators turn responses into assessments.

They perform no I/O: they return requests and read the replies.
"""
