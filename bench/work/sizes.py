"""Sizes of all-reduces that are compared, in bytes, and how often each is timed."""

SIZES = (4, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 24, 100_000_000)
TURNS = 9
SMALL, SMALL_TURNS = 1 << 15, 200  # what takes microseconds is timed more often


def turns_of(size: int) -> int:
    """How often an all-reduce of so many bytes is timed."""
    return SMALL_TURNS if size <= SMALL else TURNS
