"""For all tests: no deadline for property tests, as machines differ, and few enough to run at each change."""

from hypothesis import settings

settings.register_profile("aftercommit", deadline=None, max_examples=50)
settings.load_profile("aftercommit")
