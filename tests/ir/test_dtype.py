"""Dtypes as objects."""

import dataclasses

import pytest

import weft as wf
from weft.errors import DTypeError
from weft.ir.dtype import DType


@dataclasses.dataclass
class Config:
    """As users have them."""

    dtype: DType


def test_a_configuration_keeps_its_element_type():
    assert dataclasses.asdict(Config(wf.float32)) == {"dtype": wf.float32}


def test_an_element_type_cannot_be_changed():
    with pytest.raises(AttributeError, match="float32: element types cannot be changed"):
        wf.float32.name = "float64"
    assert wf.float32.name == "float32"


@pytest.mark.parametrize("text", ["none", b"none", "3"])
def test_a_text_is_no_number_of_any_type(text):
    with pytest.raises(DTypeError, match="bfloat16: expected a number, got"):
        wf.bfloat16(text)
    with pytest.raises(DTypeError, match="int8: expected a number, got"):
        wf.int8(text)
