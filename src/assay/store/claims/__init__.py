"""Claims on trials, which record the process that works on each trial."""
