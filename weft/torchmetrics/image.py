"""Metrics of images: peak signal-to-noise ratio, SSIM of one scale and of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from weft.eager.functions.api import Tensor, as_tensor, cat, tensor
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ops.metric.similarity import gaussian, structural_similarity
from weft.torchmetrics.metric import Metric
from weft.torchmetrics.regression import PeakSignalNoiseRatio as PeakSignalNoiseRatio

__all__ = [
    "MultiScaleStructuralSimilarityIndexMeasure",
    "StructuralSimilarityIndexMeasure",
]
_ssim = recorded(structural_similarity)
_BETAS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # of Wang et al., 2003
Reduction = Literal["elementwise_mean", "sum", "none"] | None


class StructuralSimilarityIndexMeasure(Metric):
    """SSIM: how similar images (N, C, H, W) are in brightness, contrast and structure.

    The value of a batch, that of a call, has gradients.

    Args:
        gaussian_kernel: whether windows have weights of a Gaussian; else all weigh the same.
        sigma: the Gaussian's standard deviation, or those along height and width.
        kernel_size: the size of windows whose pixels weigh the same.
        reduction: `"elementwise_mean"`, `"sum"` or `"none"` over images.
        data_range: the range of the numbers, or the least and the largest, which clip them; by
            default that of each batch.
        k1: times the range: a small number in the part of brightness.
        k2: times the range: a small number in the part of contrast.
        return_full_image: false: the only one here.
        return_contrast_sensitivity: false: the only one here.

    Raises:
        ArgumentError: an argument is not among these.

    >>> import weft as wf
    >>> x = wf.linspace(0, 1, 768).reshape(1, 3, 16, 16)
    >>> StructuralSimilarityIndexMeasure(data_range=1.0)(x, x)
    tensor(1.)
    """

    _betas: tuple[float, ...] = ()
    _normalize: str | None = None

    def __init__(
        self, gaussian_kernel: bool = True, sigma: float | Sequence[float] = 1.5,
        kernel_size: int | Sequence[int] = 11, reduction: Reduction = "elementwise_mean",
        data_range: float | tuple[float, float] | None = None, k1: float = 0.01, k2: float = 0.03,
        return_full_image: bool = False, return_contrast_sensitivity: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(**options)
        if return_full_image or return_contrast_sensitivity:
            raise ArgumentError.here(f"{type(self).__name__}: expected to return one number alone")
        if reduction not in ("elementwise_mean", "sum", "none", None):
            raise ArgumentError.here(f"{type(self).__name__}: got unknown reduction {reduction!r}")
        sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
        widths = [sigma] * 2 if isinstance(sigma, int | float) else list(sigma)
        if len(sizes) != 2 or len(widths) != 2 or any(n % 2 == 0 for n in sizes):
            raise ArgumentError.here(
                f"{type(self).__name__}: expected odd kernel_size and sigma along height and "
                f"width, got {kernel_size!r} and {sigma!r}"
            )
        uniform = [(1 / n,) * n for n in sizes]
        self._windows = tuple([gaussian(s) for s in widths] if gaussian_kernel else uniform)
        self._ks, self.reduction, self.data_range = (k1, k2), reduction, data_range
        mean = reduction in ("elementwise_mean", "sum")
        self.add_state("similarity", tensor(0.0) if mean else [], "sum" if mean else "cat")
        self.add_state("total", tensor(0.0), "sum")

    def similarities(self, preds: Any, target: Any) -> Tensor:
        """That of each image, with gradients."""
        x, y = as_tensor(preds), as_tensor(target)
        if x.shape != y.shape or x.ndim != 4:
            raise ShapeError.here(
                f"{type(self).__name__}: expected images (N, C, H, W) of one shape, got "
                f"{tuple(x.shape)} and {tuple(y.shape)}"
            )
        bounds = self.data_range
        if isinstance(bounds, tuple):
            x, y = x.clamp(*bounds), y.clamp(*bounds)
            span = as_tensor(bounds[1] - bounds[0])
        elif bounds is None:
            span = (x.max() - x.min()).maximum(y.max() - y.min())
        else:
            span = as_tensor(bounds)
        (k1, k2), scales = self._ks, {"betas": self._betas, "normalize": self._normalize}
        return _ssim(x, y, span.to(x.dtype), windows=self._windows, k1=k1, k2=k2, **scales)

    def update(self, preds: Any, target: Any) -> None:
        """Add a batch of images."""
        found = self.similarities(preds, target)
        self.total = self.total + found.numel()
        whole = isinstance(self.similarity, list)
        self.similarity = [*self.similarity, found] if whole else self.similarity + found.sum()

    def compute(self) -> Any:
        """The mean over images, or as `reduction` says."""
        if isinstance(self.similarity, list):
            return cat(self.similarity)
        return self.similarity / self.total if self.reduction != "sum" else self.similarity


class MultiScaleStructuralSimilarityIndexMeasure(StructuralSimilarityIndexMeasure):
    """SSIM of images, and of them at half, a quarter, ... of their size, multiplied.

    Args:
        betas: the exponent of each scale.
        normalize: what becomes of negative parts: `"relu"`, `"simple"` or `None`.

    Raises:
        ArgumentError: an argument is not among these.
    """

    def __init__(
        self, gaussian_kernel: bool = True, kernel_size: int | Sequence[int] = 11,
        sigma: float | Sequence[float] = 1.5, reduction: Reduction = "elementwise_mean",
        data_range: float | tuple[float, float] | None = None, k1: float = 0.01, k2: float = 0.03,
        betas: tuple[float, ...] = _BETAS, normalize: str | None = "relu", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            gaussian_kernel, sigma, kernel_size, reduction, data_range, k1, k2, **options
        )
        if normalize not in ("relu", "simple", None):
            raise ArgumentError.here(f"{type(self).__name__}: got unknown normalize {normalize!r}")
        self._betas, self._normalize = tuple(betas), normalize


def _function(kind: type[Metric], name: str) -> Callable[..., Any]:
    def run(preds: Any, target: Any, *args: Any, **options: Any) -> Any:
        return kind(*args, **options)(preds, target)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"`{kind.__name__}` of one batch of images, with gradients."
    return run


FUNCTIONS: Final = {
    name: _function(kind, name)
    for name, kind in (
        ("structural_similarity_index_measure", StructuralSimilarityIndexMeasure),
        (
            "multiscale_structural_similarity_index_measure",
            MultiScaleStructuralSimilarityIndexMeasure,
        ),
    )
}
"""The functions by name; `weft.torchmetrics.functional` offers them."""
