"""`tf.train.Example` and its parts, as plain objects with the messages' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import numpy as np

from weft.formats import example as format
from weft.formats import wire
from weft.tf1.framework.parsed import Parsed

__all__ = [
    "BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList",
    "Int64List", "SequenceExample",
]  # fmt: skip

T = TypeVar("T")
_NAMES: Final = {
    format.BYTES: "bytes_list", format.FLOATS: "float_list", format.INTEGERS: "int64_list"
}  # fmt: skip


class _Values:
    """A list of values."""

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self.value: list[Any] = list(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.value == getattr(other, "value", None)

    __hash__ = None  # pyright: ignore


class BytesList(_Values):
    """Byte strings.

    Args:
        value: the byte strings.
    """


class FloatList(_Values):
    """32 bit floats.

    Args:
        value: numbers.
    """


class Int64List(_Values):
    """Integers.

    Args:
        value: integers.
    """


class Feature:
    """One list of values of one kind; the list that is set determines the kind.

    Args:
        bytes_list, float_list, int64_list: the values; at most one of the lists.

    >>> Feature(int64_list=Int64List(value=[3])).WhichOneof("kind")
    'int64_list'
    """

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        self._given = (bytes_list, float_list, int64_list)
        self.bytes_list = bytes_list or BytesList()
        self.float_list = float_list or FloatList()
        self.int64_list = int64_list or Int64List()

    def WhichOneof(self, group: str) -> str | None:
        """The name of the list that is set."""
        del group
        names = list(_NAMES.values())
        filled = [name for name in names if getattr(self, name).value]
        given = [n for n, value in zip(names, self._given, strict=True) if value is not None]
        return next(iter([*filled, *given]), None)

    def HasField(self, name: str) -> bool:
        """Whether this list is set."""
        return self.WhichOneof("kind") == name

    def encoded(self) -> bytes:
        """The encoded message."""
        name = self.WhichOneof("kind")
        if name is None:
            return b""
        values = getattr(self, name).value
        if name == "bytes_list":
            content = b"".join([wire.delimited(1, each) for each in values])
            return wire.delimited(format.BYTES, content)
        if name == "float_list":
            array = np.asarray(values, np.float32)
            return wire.delimited(format.FLOATS, wire.packed(1, array) if len(array) else b"")
        array = np.asarray(values, np.int64)
        return wire.delimited(format.INTEGERS, wire.packed(1, array) if len(array) else b"")

    @classmethod
    def of(cls, found: format.Feature) -> Feature:
        """A decoded feature."""
        if not found.kind:
            return cls()
        values = format.values(found)
        plain: Any = values if isinstance(values, list) else values.tolist()
        lists: Any = (BytesList, FloatList, Int64List)
        return cls(**{_NAMES[found.kind]: lists[found.kind - 1](value=plain)})

    def __repr__(self) -> str:
        name = self.WhichOneof("kind")
        return f"Feature({name}={getattr(self, name)!r})" if name else "Feature()"


class _Map(defaultdict[str, T]):
    """A map whose entries are created on access."""

    def __init__(self, make: Callable[[], T], given: Mapping[str, T] | None) -> None:
        super().__init__(make, given or {})

    def encoded(self, number: int, content: Callable[[T], bytes]) -> bytes:
        """The fields of the entries."""
        entries = [
            wire.delimited(number, wire.delimited(1, name) + wire.delimited(2, content(value)))
            for name, value in self.items()
        ]
        return b"".join(entries)


class Features:
    """Features by name.

    Args:
        feature: the features by name.
    """

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature: _Map[Feature] = _Map(Feature, feature)

    def encoded(self) -> bytes:
        """The encoded message."""
        return self.feature.encoded(1, Feature.encoded)

    def __repr__(self) -> str:
        return f"Features(feature={dict(self.feature)!r})"


class FeatureList:
    """A list of features, one per step.

    Args:
        feature: the features, step by step.
    """

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature: list[Feature] = list(feature)

    def encoded(self) -> bytes:
        """The encoded message."""
        return b"".join([wire.delimited(1, each.encoded()) for each in self.feature])


class FeatureLists:
    """Lists of features by name.

    Args:
        feature_list: the lists by name.
    """

    def __init__(self, feature_list: Mapping[str, FeatureList] | None = None) -> None:
        self.feature_list: _Map[FeatureList] = _Map(FeatureList, feature_list)

    def encoded(self) -> bytes:
        """The encoded message."""
        return self.feature_list.encoded(1, FeatureList.encoded)


class Example(Parsed):
    """A record of features.

    Args:
        features: its features; none by default.

    >>> example = Example()
    >>> example.features.feature["label"].int64_list.value.append(3)
    >>> Example.FromString(example.SerializeToString()).features.feature["label"].int64_list
    Int64List(value=[3])
    """

    def __init__(self, features: Features | None = None) -> None:
        self.features = features or Features()

    def SerializeToString(self) -> bytes:
        """The encoded message."""
        return wire.delimited(1, self.features.encoded())

    def ParseFromString(self, serialized: bytes) -> int:
        """Replace the features by those of an encoded message.

        Raises:
            DataError: it is not an `Example`; the message says where.
        """
        found = format.features(serialized)
        self.features = Features({name: Feature.of(value) for name, value in found.items()})
        return len(serialized)

    def __repr__(self) -> str:
        return f"Example(features={self.features!r})"


class SequenceExample(Parsed):
    """Features of a whole sequence, and lists with a feature per step.

    Args:
        context: features of the whole sequence.
        feature_lists: features of its steps.
    """

    def __init__(
        self, context: Features | None = None, feature_lists: FeatureLists | None = None
    ) -> None:
        self.context = context or Features()
        self.feature_lists = feature_lists or FeatureLists()

    def SerializeToString(self) -> bytes:
        """The encoded message."""
        head = wire.delimited(1, self.context.encoded())
        return head + wire.delimited(2, self.feature_lists.encoded())

    def ParseFromString(self, serialized: bytes) -> int:
        """Replace everything by the contents of an encoded message.

        Raises:
            DataError: it is not a `SequenceExample`; the message says where.
        """
        context, lists = format.sequence_features(serialized)
        self.context = Features({name: Feature.of(value) for name, value in context.items()})
        steps = {n: FeatureList([Feature.of(f) for f in found]) for n, found in lists.items()}
        self.feature_lists = FeatureLists(steps)
        return len(serialized)
