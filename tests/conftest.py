"""What holds for all tests."""

from hypothesis import settings

# These machines are shared: a slow example is no failure. The examples are the same each time, so that what was green
# stays green; `make bench` tries new ones.
settings.register_profile("assay", deadline=None, derandomize=True)
settings.register_profile("anew", deadline=None)
settings.load_profile("assay")
