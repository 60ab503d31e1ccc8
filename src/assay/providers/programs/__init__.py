"""Candidates that are programs: functions in worker processes, commands, and web services."""
