"""The picture of the packages agrees with the imports."""

from tools import layers_picture
from tools.layers_picture import package_of, picture, reduced


def test_the_picture_in_the_document_is_current():
    drawn = picture(reduced(layers_picture.arrows()))
    assert layers_picture.BLOCK.findall(layers_picture.PAGE.read_text()) == [drawn], (
        "run python -m tools.layers_picture"
    )


def test_arrows_that_follow_from_others_are_left_out():
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": set(), "d": set()}
    assert reduced(graph) == {"a": {"b", "d"}, "b": {"c"}, "c": set(), "d": set()}


def test_parts_of_eager_are_packages():
    modules = ["weft.ops.declaration", "weft.eager.record.pending.lazy", "weft.eager"]
    assert [package_of(m) for m in modules] == ["ops", "eager.record", "eager.functions"]
