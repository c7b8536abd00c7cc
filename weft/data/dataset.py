"""`weft.data.Dataset`: pipelines of tensors, with the names of tf.data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from weft.data.convert import to_arrays, to_tensors
from weft.eager.tensor.generator import default_generator
from weft.pipeline.pipeline import Pipeline


class Dataset(Pipeline):
    """A source of elements and transformations of them; each `for` over it is an epoch.

    A pass gives tensors, `as_numpy_iterator` gives arrays. Functions given to `map` and `filter`
    get NumPy arrays. Stages without a seed take one from `weft.manual_seed`.

    >>> import numpy as np
    >>> images, labels = np.zeros((6, 2, 2), np.float32), np.arange(6)
    >>> dataset = Dataset.from_tensor_slices((images, labels)).shuffle(6, seed=1).batch(4)
    >>> [(x.shape, y.shape) for x, y in dataset]
    [(Size([4, 2, 2]), Size([4])), (Size([2, 2, 2]), Size([2]))]
    """

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Row i of each tensor or array is element i.

        Raises:
            ShapeError: first dimensions differ.
        """
        return super().from_tensor_slices(to_arrays(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """One element, as it is given."""
        return super().from_tensors(to_arrays(tensors))

    def _shown(self) -> Callable[[Any], Any] | None:
        return to_tensors

    def _function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def _fresh_seed(self) -> int:
        return default_generator.next()
