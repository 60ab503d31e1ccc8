"""Calibrate a judge by comparing its grades with known scores and people's grades."""
