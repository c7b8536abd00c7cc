"""`weft.data.Dataset`: pipelines of tensors, with the names of tf.data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from weft.data.convert import to_arrays, to_tensors
from weft.data.mapped import Mapped
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

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Self:
        """`map_func` of each element, which gets a tuple's parts as arguments.

        It gets NumPy arrays. If what it returns for the first element are tensors, it is a function
        of Weft operations: then it gets tensors, is traced once and compiled, and is called on
        whole batches where `batch` follows. Python code in it runs while it is traced only;
        random numbers of Weft are drawn from the global generator.

        Args:
            num_parallel_calls: threads that call it; `AUTOTUNE` finds their number.
            deterministic: accepted; the order never depends on threads.

        >>> import weft as wf
        >>> pixels = Dataset.range(6).map(lambda x: wf.exp(x * -0.5)).batch(3)
        >>> [batch.shape for batch in pixels]
        [Size([3]), Size([3])]
        """
        function = map_func if hasattr(map_func, "batched") else Mapped(map_func)
        return super().map(function, num_parallel_calls, deterministic)

    def _fresh_seed(self) -> int:
        return default_generator.next()
