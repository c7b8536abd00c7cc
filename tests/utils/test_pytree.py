"""`torch.utils._pytree`: structures as PyTorch takes them apart."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from weft.mirror.supplied import pytree

Point = namedtuple("Point", "x y")
TREE = {
    "a": [1, (2, None)], "b": Point(3, OrderedDict(k=4)), "c": deque([5], 3),
    "d": defaultdict(list, e=6),
}  # fmt: skip


def test_a_structure_is_built_again_from_its_leaves():
    leaves, spec = pytree.tree_flatten(TREE)
    assert leaves == [1, 2, None, 3, 4, 5, 6]
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (7, 14, 4)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == TREE
    assert (again["c"].maxlen, again["d"].default_factory) == (3, list)


def test_each_leaf_has_a_path():
    paths = [path for path, _ in pytree.tree_flatten_with_path(TREE)[0]]
    sequence, mapping, attribute = pytree.SequenceKey, pytree.MappingKey, pytree.GetAttrKey
    assert paths[1] == (mapping("a"), sequence(1), sequence(0))
    assert paths[4] == (mapping("b"), attribute("y"), mapping("k"))


def test_other_structures_may_go_on_below_the_leaves():
    found = pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": [2]}, {"b": [{"c": 3}], "a": [4]})
    assert found == {"a": (1, [4]), "b": [(2, {"c": 3})]}


@pytest.mark.parametrize(
    ("other", "text"),
    [({"a": 1}, "keys"), ([1], "type"), ({"a": 1, "b": 2}, "arity"), ({"b": (1,)}, "type")],
)
def test_structures_that_differ_are_refused(other, text):
    with pytest.raises(ValueError, match=f"Node {text} mismatch"):
        pytree.tree_map(lambda x, y: x, {"b": [1]}, other)


def test_a_class_becomes_a_container():
    class Pair:
        def __init__(self, *parts):
            self.parts = parts

    assert pytree.tree_is_leaf(Pair(1, 2))
    pytree.register_pytree_node(
        Pair, lambda x: (x.parts, None), lambda parts, _: Pair(*parts), serialized_type_name="Pair"
    )
    assert pytree.tree_map(lambda x: 2 * x, Pair(1, [2])).parts == (2, [4])
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Pair(1))
