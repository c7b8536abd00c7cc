"""Summary operations: fetched in a session, they give the bytes of a `tf.Summary`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.documentation import arguments_of
from weft.errors import ArgumentError
from weft.formats.event import histogram as counted
from weft.formats.event import message, picture, sound
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.default_graph import get_collection
from weft.tf1.framework.dtypes import string
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import Tensor

__all__ = ["audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text"]

_ILLEGAL: Final = re.compile(r"[^-/\w.]")
_SMALLEST: Final = 1e-6
_BAD: Final = (255, 0, 0, 255)  # the color of non-finite pixels


def _made(
    kind: str, name: str, family: str | None, tensor: Any, collections: Any,
    encode: Callable[[str, Any], Any],
) -> Tensor:  # fmt: skip
    """A summary of one tensor; `encode` gets the tag and the value."""
    graph = get_default_graph()
    clean = _ILLEGAL.sub("_", name).lstrip("/")
    with graph.name_scope(f"{family}/{family}/{clean}" if family else clean) as scope:
        tag = scope.rstrip("/")

        def encoded(value: Any) -> bytes:
            made = encode(tag, value)
            return message.summary(*(made if isinstance(made, list) else [made]))

        made = host_tensor(kind, [convert_to_tensor(tensor)], encoded, string, (), scope)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, made)
    return made


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A scalar summary.

    Args:
        name: its tag, after the name scope.
        tensor: of one element.
        collections: where it is added; `merge_all` takes those of `GraphKeys.SUMMARIES`.
        family: a prefix of the tag, by which TensorBoard groups.
    """
    return _made("ScalarSummary", name, family, tensor, collections, _scalar)


def _scalar(tag: str, value: np.ndarray) -> bytes:
    if value.size != 1:
        raise ArgumentError(f"summary {tag!r}: expected one number, got shape {value.shape}")
    return message.scalar(tag, float(value.reshape(())))


@arguments_of(scalar)
def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> Tensor:
    """A histogram summary; NaN and infinity are an error in the run.

    Args:
        values: numbers of any shape.
    """
    return _made("HistogramSummary", name, family, values, collections, counted.histogram)


@arguments_of(scalar)
def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None,
    family: str | None = None,
) -> Tensor:  # fmt: skip
    """An image summary of `[batch, height, width, channels]` with 1, 3 or 4 channels.

    Bytes are shown unchanged. Floats are scaled per image: to at most 255 if none is negative, else
        so that 0 is gray; non-finite pixels are red.

    Args:
        tensor: the images.
        max_outputs: the maximum number of images of the batch.
    """

    def encode(tag: str, batch: np.ndarray) -> list[bytes]:
        if batch.ndim != 4 or batch.shape[3] not in (1, 3, 4):
            text = "expected [batch, height, width, 1, 3 or 4 channels]"
            raise ArgumentError(f"summary {tag!r}: {text}, got {batch.shape}")
        found: list[bytes] = []
        for number, one in enumerate(batch[:max_outputs]):
            name = f"{tag}/image" if max_outputs == 1 else f"{tag}/image/{number}"
            pixels = one if one.dtype == np.uint8 else _scaled(one.astype(np.float64))
            found.append(message.image(name, picture.png(pixels), *pixels.shape))
        return found

    return _made("ImageSummary", name, family, tensor, collections, encode)


def _scaled(image: np.ndarray) -> np.ndarray:
    """Floats as bytes, as TensorFlow scales them."""
    good = np.isfinite(image).all(axis=2)
    values = image[good]
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    largest, top, middle = (max(-low, high), 127, 128) if low < 0 else (high, 255, 0)
    scale = 0.0 if largest < _SMALLEST else top / largest
    found = np.zeros(image.shape, np.uint8)
    found[good] = (values * scale + middle).astype(np.uint8)
    found[~good] = _BAD[: image.shape[2]]
    return found


@arguments_of(scalar)
def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3,
    collections: Sequence[str] | None = None, family: str | None = None,
) -> Tensor:  # fmt: skip
    """An audio summary of `[batch, frames]` or `[batch, frames, channels]`, samples in [-1, 1].

    Args:
        tensor: the sounds.
        sample_rate: frames per second.
        max_outputs: the maximum number of sounds of the batch.
    """
    rate = int(sample_rate)

    def encode(tag: str, batch: np.ndarray) -> list[bytes]:
        found: list[bytes] = []
        for number, one in enumerate(batch[:max_outputs]):
            name = f"{tag}/audio" if max_outputs == 1 else f"{tag}/audio/{number}"
            content, channels, frames = sound.wav(one, rate)
            found.append(message.audio(name, content, rate, channels, frames))
        return found

    return _made("AudioSummary", name, family, tensor, collections, encode)


@arguments_of(scalar)
def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> Tensor:
    """A text summary, in Markdown.

    Args:
        tensor: texts of any shape.

    Raises:
        ArgumentError: anything else.
    """
    content = convert_to_tensor(tensor)
    if content.dtype.base_dtype is not string:
        raise fail(ArgumentError, f"summary.text: {name!r}: expected a string, got {tensor!r}")

    def encode(tag: str, value: np.ndarray) -> bytes:
        metadata = message.metadata("text")
        texts = [x.decode() for x in value.ravel()]
        return message.tensor_value(tag, message.text_tensor(texts, value.shape), metadata)

    return _made("TensorSummaryV2", name, None, content, collections, encode)


@arguments_of(scalar)
def tensor_summary(
    name: str, tensor: Any, summary_description: str | None = None,
    collections: Sequence[str] | None = None, summary_metadata: Any = None,
    family: str | None = None, display_name: str | None = None,
) -> Tensor:  # fmt: skip
    """A raw tensor summary, for a custom plugin.

    Args:
        tensor: any tensor.
        summary_description: what it is.
        summary_metadata: the bytes of a `SummaryMetadata`.
        display_name: the displayed name.
    """
    metadata = summary_metadata or message.metadata(
        "", b"", display_name or "", summary_description or ""
    )

    def encode(tag: str, value: np.ndarray) -> bytes:
        return message.tensor_value(tag, message.tensor_proto(value), metadata)

    return _made("TensorSummaryV2", name, family, tensor, collections, encode)


def merge(
    inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None
) -> Tensor:
    """Several summaries merged into one.

    Args:
        inputs: summaries, or bytes of `tf.Summary`.
        collections: where it is added; none by default.
        name: of the operation.
    """
    parts = [convert_to_tensor(part) for part in inputs]
    wrong = [x for x, p in zip(inputs, parts, strict=True) if p.dtype.base_dtype is not string]
    if wrong:
        raise fail(ArgumentError, f"summary.merge: expected summaries, got {wrong[0]!r}")

    def joined(*found: Any) -> bytes:
        return b"".join(text for array in found for text in array.ravel())

    made = host_tensor("MergeSummary", parts, joined, string, (), name or "Merge/MergeSummary")
    for key in collections or ():
        get_default_graph().add_to_collection(key, made)
    return made


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """All summaries of the default graph merged into one; `None` if there are none.

    Args:
        key: the collection.
        scope: a prefix of the names of those to merge.
        name: of the operation.
    """
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None
