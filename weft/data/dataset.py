"""`weft.data.Dataset`: pipelines of tensors with tf.data's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from weft.data.convert import to_arrays, to_tensors
from weft.data.mapped import Mapped
from weft.documentation import arguments_of
from weft.eager.tensor.generator import DrawnApart, default_generator
from weft.ops.refusal import guard_methods
from weft.pipeline.pipeline import Pipeline


class Dataset(Pipeline):
    """A source of elements and transformations of them; each iteration over it is an epoch.

    Iteration yields tensors, `as_numpy_iterator` yields arrays. Functions given to `map` and
    `filter` get NumPy arrays. Stages without a seed take one from `weft.manual_seed`.

    Args:
        stage: the last stage of a pipeline; functions such as `from_tensor_slices` and `map` pass
            it.

    >>> import numpy as np
    >>> images, labels = np.zeros((6, 2, 2), np.float32), np.arange(6)
    >>> dataset = Dataset.from_tensor_slices((images, labels)).shuffle(6, seed=1).batch(4)
    >>> [(x.shape, y.shape) for x, y in dataset]
    [((4, 2, 2), (4,)), ((2, 2, 2), (2,))]
    """

    @classmethod
    @arguments_of(Pipeline.from_tensor_slices)
    def from_tensor_slices(cls, tensors: Any) -> Self:
        """Row i of each tensor or array is element i.

        Raises:
            ShapeError: first dimensions differ.
        """
        return super().from_tensor_slices(to_arrays(tensors))

    @classmethod
    @arguments_of(Pipeline.from_tensors)
    def from_tensors(cls, tensors: Any) -> Self:
        """A dataset of one element."""
        return super().from_tensors(to_arrays(tensors))

    def _shown(self) -> Callable[[Any], Any] | None:
        return to_tensors

    @arguments_of(Pipeline.map)
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> Self:
        """`map_func` of each element; the parts of a tuple are separate arguments.

        It gets NumPy arrays. If it returns tensors for the first element, it is taken as a function
        of Weft operations: then it gets tensors, is traced once and compiled, and is called on
        whole batches if `batch` follows. Its Python code runs only during tracing. Its random
        numbers depend on the dataset's seed, the epoch and the element's (or batch's) position, not
        on threads.

        Args:
            map_func: the function.

        >>> import weft as wf
        >>> pixels = Dataset.range(6).map(lambda x: wf.exp(x * -0.5)).batch(3)
        >>> [batch.shape for batch in pixels]
        [(3,), (3,)]
        """
        function = map_func if hasattr(map_func, "batched") else Mapped(self._function(map_func))
        return super().map(function, num_parallel_calls, deterministic)

    def _draws(self) -> Callable[..., DrawnApart]:
        return DrawnApart

    def _fresh_seed(self) -> int:
        return default_generator.next()


guard_methods(Dataset, Pipeline)
