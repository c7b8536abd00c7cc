"""When compiling pays off for what runs on library kernels.

That is where a program of its own would have saved as much as compiling it takes. Whoever stops
earlier has lost nothing, and whoever goes on loses at most as much once more. Figures are those of
one thread, from training steps between 60 us and 130 ms (4 to 810 launches): compiling them takes
0.4 to 4 s of a processor, in all processes, and what it gains is within a factor of 3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

COMPILE_SECONDS: Final = 5e-3
"""What compiling takes for each launch of a list, ..."""
STARTING: Final = 80
"""... and to begin with, as for so many launches: processes are started, and a step is planned."""
LAUNCH_SECONDS: Final = 5e-6
"""What a launch of a list takes besides its work: it is stitched, and finds little in caches."""
SAVED: Final = 0.25
"""The part of the work that a program saves: it writes fewer intermediate results. Measured were a
tenth for transformers and a half for small convolutions."""


LEAST: Final = 2
"""Runs before a program, at least: what is never computed again needs none."""
BESIDE: Final = 8
"""A program takes over when it should be there, but at most after so many times the runs before."""


class Price(NamedTuple):
    """What a run on library kernels takes, as it follows from the structure.

    Attributes:
        launches: how many kernels there are.
        seconds: of one thread, for their work.
    """

    launches: int
    seconds: float

    @property
    def compiling(self) -> float:
        """Seconds that compiling a program takes."""
        return COMPILE_SECONDS * (STARTING + self.launches)

    @property
    def runs(self) -> int:
        """After so many runs a program pays off: 106 of 309 launches that take 67 ms."""
        return int(self.compiling / (LAUNCH_SECONDS * self.launches + SAVED * self.seconds + 1e-9))

    def meanwhile(self, runs: int) -> int:
        """So often it runs while a program is compiled, where it has run so often before."""
        found = self.compiling / (LAUNCH_SECONDS * self.launches + self.seconds + 1e-9)
        return max(min(int(found), BESIDE * runs), 1)
