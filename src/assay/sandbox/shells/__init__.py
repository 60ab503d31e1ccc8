"""Run the commands and tests of agents in shells, with one confined shell per trial."""
