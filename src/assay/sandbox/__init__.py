"""Places where what is not trusted runs, and their limits."""
