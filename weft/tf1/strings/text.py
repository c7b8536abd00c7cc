"""Operations on texts: joining, cutting, searching. They run on the host, on bytes."""

from __future__ import annotations

import base64
import re
import string as characters
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DTypeError, ShapeError
from weft.ir.shape import Shape, broadcast, compatible, merge, show
from weft.tf1.framework.convert import convert_to_tensor, static_axes
from weft.tf1.framework.dtypes import int32, int64, string
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.host import host_op, host_tensor
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "decode_base64", "encode_base64", "reduce_join", "regex_replace", "string_join",
    "string_split", "string_strip", "substr",
]  # fmt: skip

UNITS: Final = ("BYTE", "UTF8_CHAR")


def text_tensor(x: Any, what: str) -> Tensor:
    """A tensor of texts.

    Raises:
        DTypeError: it holds numbers.
    """
    found = convert_to_tensor(x)
    if found.dtype.base_dtype is not string:
        raise fail(DTypeError, f"{what}: expected a tensor of tf.string, got {found!r}")
    return found


def each(
    kind: str, x: Any, function: Callable[[bytes], Any], name: str | None, dtype: Any = string
) -> Tensor:
    """`function` of each text."""
    with name_scope(name, kind, [x]) as scope:
        tensor = text_tensor(x, kind)
        kept = tensor.dtype.base_dtype.ir.numpy if dtype is string else dtype.ir.numpy
        many = np.frompyfunc(function, 1, 1)
        run = lambda texts: np.asarray(many(texts), kept)  # noqa: E731
        return host_tensor(kind, [tensor], run, dtype, tensor.shape, scope)


def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """The texts of several tensors joined, element by element; scalars are repeated.

    Args:
        inputs: of equal shapes, or scalars.
        separator: what stands between them.
    """
    between = separator.encode()
    with name_scope(name, "StringJoin", list(inputs)) as scope:
        tensors = [text_tensor(x, "string_join") for x in inputs]
        if not tensors:
            raise fail(ArgumentError, "string_join: expected at least one input, got none")
        shape = _common([t.shape.as_dims() for t in tensors])
        many = np.frompyfunc(lambda *parts: between.join(parts), len(tensors), 1)

        def join(*arrays: Any) -> Any:
            _common([x.shape for x in arrays])
            return many(*arrays)

        return host_tensor("StringJoin", tensors, join, string, shape, scope)


def _common(shapes: Sequence[Shape]) -> Shape:
    """The one shape of all that are no scalars.

    Raises:
        ShapeError: there are several.
    """
    found: Shape = ()
    for shape in shapes:
        if shape is None:
            return None
        if shape:
            if found and not compatible(found, shape):
                text = f"expected equal shapes, or scalars, got {show(found)} and {show(shape)}"
                raise ShapeError(f"string_join: {text}")
            found = merge(found, shape) if found else shape
    return found


def reduce_join(
    inputs: Any, axis: Any = None, keep_dims: bool | None = None, separator: str = "",
    name: str | None = None, reduction_indices: Any = None, keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The texts along some axes joined.

    Args:
        axis: axes, joined one after the other; by default all, the last one first.
        keep_dims, keepdims: whether joined axes stay, of size 1.
        separator: what stands between them.
        reduction_indices: another name of `axis`.
    """
    kept = bool(keepdims if keep_dims is None else keep_dims)
    given = static_axes(reduction_indices if axis is None else axis, "reduce_join")
    with name_scope(name, "ReduceJoin", [inputs]) as scope:
        tensor = text_tensor(inputs, "reduce_join")
        rank = tensor.shape.ndims
        if rank is None:
            raise fail(ShapeError, "reduce_join: expected a tensor of known rank")
        axes = tuple(reversed(range(rank))) if given is None else given
        if any(not -rank <= a < rank for a in axes):
            raise fail(ShapeError, f"reduce_join: expected axes of rank {rank}, got {axes}")
        places = [a % rank for a in axes]
        dims = list(tensor.shape.as_dims() or ())
        left: list[int | None] = [
            1 if i in places else d for i, d in enumerate(dims) if kept or i not in places
        ]

        def joined(texts: Any) -> Any:
            rest = [i for i in range(rank) if i not in places]
            turned = texts.transpose([*rest, *reversed(places)])
            rows = turned.reshape(*turned.shape[: len(rest)], -1)
            found = np.empty(rows.shape[:-1], np.object_)
            for place in np.ndindex(found.shape):
                found[place] = separator.encode().join(rows[place])
            sizes = [1 if i in places else texts.shape[i] for i in range(rank)]
            return found.reshape(sizes) if kept else found

        return host_tensor("ReduceJoin", [tensor], joined, string, left, scope)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The length of each text, int32.

    Args:
        unit: what is counted: "BYTE" or "UTF8_CHAR".
    """
    _check_unit("string_length", unit)
    count = len if unit == "BYTE" else _characters
    return each("StringLength", input, count, name, int32)


def _characters(text: bytes) -> int:
    return sum(byte & 0xC0 != 0x80 for byte in text)


def _check_unit(what: str, unit: str) -> None:
    if unit not in UNITS:
        raise fail(ArgumentError, f"{what}: expected unit {' or '.join(UNITS)}, got {unit!r}")


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Letters in lower case.

    Args:
        encoding: "" for ASCII letters only, or "utf-8".
    """
    return each("StringLower", input, _cased(encoding, "lower"), name)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Letters in upper case.

    Args:
        encoding: "" for ASCII letters only, or "utf-8".
    """
    return each("StringUpper", input, _cased(encoding, "upper"), name)


def _cased(encoding: str, case: str) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        text = f"string_{case}: expected encoding '' or 'utf-8', got {encoding!r}"
        raise fail(ArgumentError, text)
    if encoding:
        return lambda text: getattr(text.decode(), case)().encode()
    return lambda text: getattr(text, case)()


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Texts without white space at both ends."""
    return each("StringStrip", input, lambda text: text.strip(), name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Parts of texts.

    Args:
        pos: where each begins; from the end if negative.
        len: the length of each; a part ends with its text, also if this is negative.
        unit: what is counted: "BYTE" or "UTF8_CHAR".

    Raises:
        InvalidArgumentError: in a run, a position is outside its text.
    """
    _check_unit("substr", unit)
    count = len
    with name_scope(name, "Substr", [input]) as scope:
        tensor = text_tensor(input, "substr")
        places = [convert_to_tensor(pos, name="pos"), convert_to_tensor(count, name="len")]
        shape = broadcast(*[t.shape.as_dims() for t in (tensor, *places)])
        cut = np.frompyfunc(lambda text, p, n: _part(text, p, n, unit), 3, 1)
        return host_tensor("Substr", [tensor, *places], cut, string, shape, scope)


def _part(text: bytes, pos: int, count: int, unit: str) -> bytes:
    whole: Any = text if unit == "BYTE" else text.decode()
    size = whole.__len__()
    if not -size <= pos <= size:
        raise ArgumentError(f"pos {pos} out of range for string {text!r}")
    begin = pos if pos >= 0 else pos + size
    found = whole[begin : begin + count if count >= 0 else size]
    return found if unit == "BYTE" else found.encode()


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Texts with what matches a pattern replaced.

    Args:
        pattern: a regular expression: a text, or a scalar tensor.
        rewrite: what stands instead; `\1` is the first group, `\0` the whole match.
        replace_global: whether all matches are replaced, or only the first.
    """
    with name_scope(name, "RegexReplace", [input]) as scope:
        tensors = [text_tensor(x, "regex_replace") for x in (input, pattern, rewrite)]

        def replaced(texts: Any, expression: Any, instead: Any) -> Any:
            compiled = _compiled(expression[()])
            new = re.sub(rb"\\(\d)", rb"\\g<\1>", instead[()])
            count = 0 if replace_global else 1
            try:
                return np.frompyfunc(lambda text: compiled.sub(new, text, count), 1, 1)(texts)
            except (re.error, IndexError) as error:
                raise ArgumentError(f"invalid rewrite {instead[()]!r}: {error}") from error

        shape = tensors[0].shape
        return host_tensor("RegexReplace", tensors, replaced, string, shape, scope)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether the whole of each text matches a regular expression."""
    with name_scope(name, "RegexFullMatch", [input]) as scope:
        tensors = [text_tensor(x, "regex_full_match") for x in (input, pattern)]

        def matches(texts: Any, expression: Any) -> Any:
            compiled = _compiled(expression[()])
            found = np.frompyfunc(lambda text: compiled.fullmatch(text) is not None, 1, 1)(texts)
            return np.asarray(found, np.bool_)

        shape = tensors[0].shape
        return host_tensor("RegexFullMatch", tensors, matches, bool, shape, scope)


def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ArgumentError(f"invalid pattern {pattern!r}: {error}") from error


def string_split(
    source: Any, delimiter: Any = " ", skip_empty: bool = True, name: str | None = None
) -> SparseTensor:
    """The parts of each text of a vector, as the rows of a sparse tensor.

    Args:
        delimiter: characters, each of which ends a part; the single bytes are the parts if empty.
        skip_empty: whether empty parts are left out.
    """
    with name_scope(name, "StringSplit", [source]) as scope:
        tensors = [text_tensor(x, "string_split") for x in (source, delimiter)]

        def parts(texts: Any, at: Any) -> Any:
            rows = [_parts(text, at[()], skip_empty) for text in texts]
            places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
            values = np.array([part for row in rows for part in row], np.object_)
            sizes = [len(rows), max(map(len, rows), default=0)]
            return np.array(places, np.int64).reshape(-1, 2), values, np.array(sizes, np.int64)

        kinds, shapes = [int64, string, int64], [(None, 2), (None,), (2,)]
        return SparseTensor(*host_op("StringSplit", tensors, parts, kinds, shapes, scope).outputs)


def _parts(text: bytes, delimiters: bytes, skip_empty: bool) -> list[bytes]:
    if not (delimiters and text):
        return [text[i : i + 1] for i in range(len(text))]
    first = delimiters[:1]
    same = text.translate(bytes.maketrans(delimiters, first * len(delimiters)))
    found = same.split(first)
    return [part for part in found if part] if skip_empty else found


_WEB_SAFE: Final = frozenset((characters.ascii_letters + characters.digits + "-_=").encode())


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Texts in base64 with `-` and `_`, for addresses.

    Args:
        pad: whether `=` fills the last four characters.
    """

    def encoded(text: bytes) -> bytes:
        found = base64.urlsafe_b64encode(text)
        return found if pad else found.rstrip(b"=")

    return each("EncodeBase64", input, encoded, name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The texts that `encode_base64` encoded.

    Raises:
        InvalidArgumentError: in a run, a text is none of these.
    """

    def decoded(text: bytes) -> bytes:
        plain = text.rstrip(b"=")
        if not _WEB_SAFE.issuperset(plain) or len(plain) % 4 == 1:
            raise ArgumentError(f"invalid character found in base64: {text!r:.60}")
        return base64.urlsafe_b64decode(plain + b"=" * (-len(plain) % 4))

    return each("DecodeBase64", input, decoded, name)
