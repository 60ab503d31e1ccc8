"""Grading: evaluators turn responses into assessments. They do no I/O: they return requests and read the replies."""
