"""Write a run's plan, calls and results while the run is executed."""
