"""Every argument of public layers, optimizers, callbacks and dataset functions is documented."""

import pytest

from tools.undocumented import FACES, missing, undocumented

# Of each face, how many objects may still be undocumented; a number here may only become smaller
LEFT = {
    "weft.nn": 102,
    "weft.nn.functional": 115,
    "weft.nn.init": 21,
    "weft.nn.utils": 14,
    "weft.nn.utils.parametrizations": 3,
    "weft.nn.utils.parametrize": 9,
    "weft.nn.utils.prune": 16,
    "weft.nn.utils.rnn": 7,
    "weft.optim": 15,
    "weft.optim.lr_scheduler": 17,
    "weft.optim.swa_utils": 4,
    "weft.tf1.layers": 18,
    "weft.tf1.keras.layers": 69,
    "weft.tf1.keras.optimizers": 9,
    "weft.tf1.keras.callbacks": 1,
    "weft.tf1.train": 6,
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
