"""Drawn tests draw the same cases at every run, so that a verdict speaks of the code alone.

`make soak` draws others.
"""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("same")
