"""Image files from pixels. Needs Pillow."""

from __future__ import annotations

from typing import Any

from weft.documentation import named
from weft.errors import DTypeError
from weft.formats.image import encode as bytes_of
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import string, uint8
from weft.tf1.framework.graph import fail
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import Tensor

__all__ = ["encode_jpeg", "encode_png"]


def _encoder(title: str, kind: str, file: str):
    @named(
        title,
        f"""The bytes of a {file} file with an image, (height, width, channels), uint8.

    Raises:
        DTypeError: the image has another type.
    """,
    )
    def encode(image: Any, name: str | None = None, **options: Any) -> Tensor:
        del options
        x = convert_to_tensor(image, name="image")
        if x.dtype.base_dtype is not uint8:
            raise fail(DTypeError, f"{title}: expected uint8, got {x.dtype.name}")
        return host_tensor(kind, [x], lambda a: bytes_of(a, file), string, (), name)

    return encode


encode_png = _encoder("encode_png", "EncodePng", "PNG")
encode_jpeg = _encoder("encode_jpeg", "EncodeJpeg", "JPEG")
