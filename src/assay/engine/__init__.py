"""Plan, schedule, execute and resume runs. The engine prints nothing and has no user interface."""
