"""Run agents' commands and tests in shells: one confined shell for each trial."""
