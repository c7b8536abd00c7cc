"""Every argument of public layers, optimizers, callbacks and dataset functions is documented."""

import pytest

from tools.undocumented import FACES, missing, undocumented

# Of each face, how many objects may still be undocumented; a number here may only become smaller
LEFT = {
    "weft.tf1.train": 31,
    "weft.tf1.data": 19,
    "weft.tf1.metrics": 26,
    "weft.tf1.summary": 9,
}


def test_documented() -> None:
    objects = undocumented()
    more = {face: names for face, names in objects.items() if len(names) > LEFT.get(face, 0)}
    assert not more, f"name every argument in `Args:` (python -m tools.undocumented): {more}"


def test_faces_left_are_faces() -> None:
    assert LEFT.keys() <= FACES.keys()


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
