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
        """After so many runs a program pays off.

        >>> Price(4, 4.5e-6).runs, Price(309, 0.0667).runs
        (19880, 106)
        """
        return int(self.compiling / (LAUNCH_SECONDS * self.launches + SAVED * self.seconds + 1e-9))

    @property
    def runs_meanwhile(self) -> int:
        """So often it runs while a program is compiled.

        >>> Price(309, 0.0667).runs_meanwhile
        28
        """
        return int(self.compiling / (LAUNCH_SECONDS * self.launches + self.seconds + 1e-9))
