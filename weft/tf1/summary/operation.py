"""Summary operations: fetched in a session, they give the bytes of a `tf.Summary`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.documentation import arguments_of
from weft.errors import ArgumentError, WeftError
from weft.formats.event import histogram as counted
from weft.formats.event import message, picture, sound
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import Graph, fail, get_collection, get_default_graph
from weft.tf1.framework.tensor import HOOKS, Tensor

__all__ = ["audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text"]

Encode = Callable[..., list[bytes]]  # from the values of the tensors
_ILLEGAL: Final = re.compile(r"[^-/\w.]")
_SMALLEST: Final = 1e-6
_BAD: Final = (255, 0, 0, 255)  # the color of non-finite pixels


class SummaryTensor:
    """A summary in a graph.

    Attributes:
        name: of the operation.
        graph: its graph.
        inputs: the tensors that it shows.
    """

    def __init__(self, name: str, graph: Graph, inputs: Sequence[Tensor], encode: Encode) -> None:
        self.name = f"{name}:0"
        self.graph = graph
        self.inputs = tuple(inputs)
        self._encode = encode

    @property
    def _host_inputs(self) -> Sequence[Tensor]:
        """The tensors that a session must compute for it."""
        return self.inputs

    def _host_fetch(self, session: Any, *values: Any) -> bytes:
        """The encoded summary, from the values of the inputs."""
        try:
            return message.summary(*self._encode(*map(np.asarray, values)))
        except WeftError as error:
            raise InvalidArgumentError(None, None, str(error)) from error

    def eval(self, feed_dict: Any = None, session: Any = None) -> bytes:
        """The encoded summary, computed in `session` or the default session."""
        found = session or HOOKS.default_session()
        if found is None:
            raise fail(ArgumentError, "eval: there is no default session: give one")
        return found.run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape=() dtype=string>"


def _made(
    name: str, family: str | None, tensor: Any, collections: Any, encode: Callable[[str, Any], Any]
) -> SummaryTensor:
    """A summary of one tensor; `encode` gets the tag and the value."""
    graph = get_default_graph()
    clean = _ILLEGAL.sub("_", name).lstrip("/")
    with graph.name_scope(f"{family}/{family}/{clean}" if family else clean) as scope:
        tag = scope.rstrip("/")
        inputs = [] if isinstance(tensor, str | bytes) else [convert_to_tensor(tensor)]

        def values(*found: Any) -> list[bytes]:
            made = encode(tag, *(found or [tensor]))
            return made if isinstance(made, list) else [made]

        made = SummaryTensor(tag, graph, inputs, values)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, made)
    return made


def scalar(
    name: str, tensor: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> SummaryTensor:
    """A scalar summary.

    Args:
        name: its tag, after the name scope.
        tensor: of one element.
        collections: where it is added; `merge_all` takes those of `GraphKeys.SUMMARIES`.
        family: a prefix of the tag, by which TensorBoard groups.
    """
    return _made(name, family, tensor, collections, _scalar)


def _scalar(tag: str, value: np.ndarray) -> bytes:
    if value.size != 1:
        raise ArgumentError(f"summary {tag!r}: expected one number, got shape {value.shape}")
    return message.scalar(tag, float(value.reshape(())))


@arguments_of(scalar)
def histogram(
    name: str, values: Any, collections: Sequence[str] | None = None, family: str | None = None
) -> SummaryTensor:
    """A histogram summary; NaN and infinity are an error in the run.

    Args:
        values: numbers of any shape.
    """
    return _made(name, family, values, collections, counted.histogram)


@arguments_of(scalar)
def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Sequence[str] | None = None,
    family: str | None = None,
) -> SummaryTensor:  # fmt: skip
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

    return _made(name, family, tensor, collections, encode)


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
) -> SummaryTensor:  # fmt: skip
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

    return _made(name, family, tensor, collections, encode)


@arguments_of(scalar)
def text(name: str, tensor: Any, collections: Sequence[str] | None = None) -> SummaryTensor:
    """A text summary, in Markdown: of a string, as graphs have no string tensors.

    Args:
        tensor: the string.

    Raises:
        ArgumentError: anything else.
    """
    if not isinstance(tensor, str | bytes):
        raise fail(ArgumentError, f"summary.text: {name!r}: expected a string, got {tensor!r}")
    content = tensor if isinstance(tensor, str) else tensor.decode()

    def encode(tag: str, _: Any) -> bytes:
        metadata = message.metadata("text")
        return message.tensor_value(tag, message.text_tensor([content]), metadata)

    return _made(name, None, content, collections, encode)


@arguments_of(scalar)
def tensor_summary(
    name: str, tensor: Any, summary_description: str | None = None,
    collections: Sequence[str] | None = None, summary_metadata: Any = None,
    family: str | None = None, display_name: str | None = None,
) -> SummaryTensor:  # fmt: skip
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

    return _made(name, family, tensor, collections, encode)


def merge(
    inputs: Sequence[Any], collections: Sequence[str] | None = None, name: str | None = None
) -> SummaryTensor:
    """Several summaries merged into one.

    Args:
        inputs: summaries, or bytes of `tf.Summary`.
        collections: where it is added; none by default.
        name: of the operation.
    """
    graph = get_default_graph()
    parts = list(inputs)
    wrong = [part for part in parts if not isinstance(part, SummaryTensor)]
    if wrong:
        raise fail(ArgumentError, f"summary.merge: expected summaries, got {wrong[0]!r}")
    tensors = [tensor for part in parts for tensor in part.inputs]

    def encode(*values: Any) -> list[bytes]:
        rest = iter(values)
        found: list[bytes] = []
        for part in parts:
            found += part._encode(*[next(rest) for _ in part.inputs])
        return found

    made = SummaryTensor(graph.unique_name(name or "Merge/MergeSummary"), graph, tensors, encode)
    for key in collections or ():
        graph.add_to_collection(key, made)
    return made


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> SummaryTensor | None:
    """All summaries of the default graph merged into one; `None` if there are none.

    Args:
        key: the collection.
        scope: a prefix of the names of those to merge.
        name: of the operation.
    """
    found = get_collection(key, scope)
    return merge(found, name=name) if found else None
