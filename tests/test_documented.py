"""Every argument of public layers, optimizers, callbacks and dataset functions is documented."""

import pytest

from tools.undocumented import missing, undocumented


def test_every_argument_is_documented() -> None:
    left = {face: names for face, names in undocumented().items() if names}
    assert not left, f"name every argument in `Args:` (python -m tools.undocumented): {left}"


def silent(x: int) -> None: ...


def named(x: int) -> None:
    """The square of `x`."""


def half(x: int, y: int, *more: int, _inner: int = 0, **options: int) -> None:
    """The sum.

    Args:
        x (int): a term. Not an entry: y: 2.
    """


class Layer:
    """A layer.

    Args:
        size, scale: how large, and
            bias: not an entry either.
    """

    def __init__(self, size: int, scale: float, bias: bool, shift: float) -> None:
        """Make one.

        Args:
            shift: what is added.
        """


@pytest.mark.parametrize(
    "of, names", [(silent, None), (named, []), (half, ["y"]), (Layer, ["bias"])]
)
def test_missing_arguments_are_seen(of: object, names: list[str] | None) -> None:
    assert missing(of) == names
