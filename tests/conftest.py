"""Property tests draw the same cases in every run, so that a failure comes from the code alone.

`make soak` draws others. A shell that starts the suite in the background has Ctrl-C ignored;
here it is heard, as the tests of it need. Pytest's hook for what finalizers raise is not the last.
"""

import signal
import sys

from hypothesis import settings

from weft.interrupt import AgainBehindFinalizers

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile("same")
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart() -> None:
    sys.unraisablehook = AgainBehindFinalizers(sys.unraisablehook)
