"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("assay", deadline=None)  # these machines are shared: a slow example is no failure
settings.load_profile("assay")
