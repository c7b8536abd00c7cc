"""`save` and `load` round trips."""

import io
import random
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutation import mutated
from safetensors.numpy import load_file
from strategies import at_most

import weft as wf
from weft import errors
from weft.errors import ArgumentError, DataError
from weft.formats.safetensors import write_arrays

TENSORS = st.lists(st.integers(0, 3), max_size=3).map(lambda shape: wf.rand(shape))
LEAVES = st.one_of(
    TENSORS, st.integers(), st.floats(allow_nan=False), st.text(), st.booleans(), st.none()
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


def same(a, b):
    if isinstance(a, wf.Tensor):
        return (
            isinstance(b, wf.Tensor) and a.dtype is b.dtype and np.array_equal(a.numpy(), b.numpy())
        )
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@at_most(40)
@given(tree=TREES)
def test_nested_tensors_round_trip(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("save") / "x.safetensors"
    wf.save(tree, path)
    assert same(tree, wf.load(path))


def test_a_state_dict_is_a_plain_file(tmp_path):
    state = OrderedDict(
        w=wf.rand(2, 3, requires_grad=True), n=wf.tensor(3), m=np.ones(2, order="F")
    )
    wf.save(state, str(tmp_path / "a"))
    assert sorted(load_file(tmp_path / "a")) == ["m", "n", "w"]
    found = wf.load(tmp_path / "a", "cpu", weights_only=True)
    assert np.array_equal(found["w"].numpy(), state["w"].detach().numpy())
    assert not found["w"].requires_grad and found["n"].item() == 3


def test_every_type_and_layout(tmp_path):
    for dtype in (wf.bfloat16, wf.float16, wf.float64, wf.int8, wf.bool, wf.int64):
        x = wf.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype)
        wf.save({"x": x, "t": x.T, "part": x[:, 1:]}, tmp_path / "a")
        found = wf.load(tmp_path / "a")
        assert found["x"].dtype is dtype and found["t"].tolist() == x.T.tolist()
        assert found["part"].tolist() == x[:, 1:].tolist()


def test_names_that_look_the_same(tmp_path):
    tree = {"a.b": wf.ones(1), "a": {"b": wf.zeros(1)}, "epoch": 3}
    wf.save(tree, tmp_path / "a")
    assert same(tree, wf.load(tmp_path / "a"))
    wf.save(wf.ones(2), tmp_path / "b")
    assert wf.load(tmp_path / "b").tolist() == [1.0, 1.0]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "a"
    wf.save({"x": wf.ones(1)}, path)
    with pytest.raises(errors.DTypeError, match=r"got .*lambda.* at 'model.0'; save its parts"):
        wf.save({"model": [lambda: 0]}, path)
    with pytest.raises(
        errors.DTypeError, match=r"expected strings or integers of 4096 bits as keys, got \(1, 2\)"
    ):
        wf.save({(1, 2): wf.ones(1)}, path)
    assert wf.load(path)["x"].tolist() == [1.0] and [p.name for p in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "tree",
    ["[", '[["tensor","gone"]]', '[["set",0]]', "3", '[["dict",["a"]]]', '[["list",-1]]', "[]",
     '[["plain",1],["plain",2]]', '[["list",true]]', '[["dict",[["a"]]]]', '[["tensor","x",0]]',
     '[["plain",1],["dict",[[1]]]]', '[["plain",1],["plain",1],["dict",[1,1]]]', "[" * 10**5],
)  # fmt: skip
def test_a_damaged_tree_is_reported(tmp_path, tree):
    write_arrays(tmp_path / "a", {"x": np.ones(1)}, {"weft.tree": tree})
    with pytest.raises(errors.DataError, match=r"is damaged: its 'weft.tree'"):
        wf.load(tmp_path / "a")


@pytest.mark.parametrize("wrap", [lambda x: {"k": x}, lambda x: [x], lambda x: (x, 1)])
def test_any_depth_round_trips(tmp_path, wrap):
    tree, depth = wf.ones(2), 5000
    for _ in range(depth):
        tree = wrap(tree)
    wf.save(tree, tmp_path / "a")
    assert (tmp_path / "a").stat().st_size < 500_000
    found = wf.load(tmp_path / "a")
    for _ in range(depth):
        found, tree = (x["k"] if isinstance(x, dict) else x[0] for x in (found, tree))
    assert found.tolist() == [1.0, 1.0]


def test_what_contains_itself_raises(tmp_path):
    inner: dict = {}
    tree = {"model": [inner, inner]}  # twice is fine
    inner["w"] = wf.ones(1)
    wf.save(tree, tmp_path / "a")
    assert same(tree, wf.load(tmp_path / "a"))
    inner["self"] = tree["model"]
    with pytest.raises(errors.TreeError, match=r"the list at 'model.0.self' contains itself"):
        wf.save(tree, tmp_path / "a")
    assert set(wf.load(tmp_path / "a")["model"][0]) == {"w"}


def test_numbers_and_names_that_the_format_has_no_place_for(tmp_path):
    with pytest.raises(errors.DTypeError, match=r"an integer of \d+ bits at 'n'"):
        wf.save({"n": 10**5000}, tmp_path / "a")
    with pytest.raises(errors.DTypeError, match=r"as keys, got a longer one"):
        wf.save({10**5000: 1}, tmp_path / "a")
    for tree in ({"__metadata__": wf.ones(1)}, {"n": 1 << 70, "w": [wf.ones(1)]}):
        wf.save(tree, tmp_path / "a")
        assert same(tree, wf.load(tmp_path / "a"))


@pytest.mark.parametrize(
    "tree", [{"lr": 0.001, "w": wf.ones(3)}, {"w": wf.ones(3)}, [wf.ones(2), None], {"n": 1}]
)
def test_no_damage_goes_unnoticed(tmp_path, tree):
    path, draw = tmp_path / "a", random.Random(1)
    wf.save(tree, path)
    whole = path.read_bytes()
    for _ in range(100):
        path.write_bytes(mutated(whole, draw))
        with pytest.raises(errors.DataError):
            wf.load(path)


class Config:
    def __init__(self):
        self.width, self.activation, self.dtype = 3, wf.nn.functional.relu, wf.float32


class Tied(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.config, self.kinds = Config(), {"a", "b"}
        self.first, self.second = wf.nn.Linear(3, 3), wf.nn.LazyBatchNorm1d()
        self.third = wf.nn.Linear(3, 3)
        self.third.weight = self.first.weight
        self.layers, self.place = [self.first], Place(1, 2)

    def forward(self, x):
        return self.third(self.config.activation(self.second(self.first(x))))


class Place(NamedTuple):
    x: int
    y: int


def test_whole_modules_are_a_class_and_a_state(tmp_path):
    net, x = Tied(), wf.randn(4, 3)
    net(x)
    net.eval()
    net.third.bias.requires_grad_(False)
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)
    schedule = wf.optim.lr_scheduler.StepLR(optimizer, 2)
    wf.save({"net": net, "schedule": schedule, "weft.kept": 1}, tmp_path / "a")
    with pytest.raises(DataError, match=r"the first of .*Tied, .* load it with weights_only=False"):
        wf.load(tmp_path / "a")
    found = wf.load(tmp_path / "a", weights_only=False)
    twin = found["net"]
    assert type(twin) is Tied and not twin.training and wf.equal(twin(x), net(x))
    assert twin.third.weight is twin.first.weight and twin.layers[0] is twin.first
    assert [p.requires_grad for p in twin.parameters()] == [
        p.requires_grad for p in net.parameters()
    ]
    assert (twin.kinds, twin.place, twin.config.dtype) == ({"a", "b"}, Place(1, 2), wf.float32)
    assert twin.config.activation is wf.nn.functional.relu
    assert found["schedule"].state_dict() == schedule.state_dict()
    wf.serialization.add_safe_globals([Tied, Config, Place])
    wf.save(Config.__new__(Config), tmp_path / "b")
    assert type(wf.load(tmp_path / "b")) is Config
    wf.serialization.clear_safe_globals()
    net.first.act = lambda x: x
    with pytest.raises(errors.DTypeError, match=r"imported, got <function .*lambda.*first.state"):
        wf.save({"net": net}, tmp_path / "a")
    assert wf.load(tmp_path / "a", weights_only=False)["weft.kept"] == 1
    wf.save({"weft.saved": 1}, tmp_path / "c")
    assert wf.load(tmp_path / "c") == {"weft.saved": 1}


def test_open_files_are_written_and_read(tmp_path):
    """In memory, or whatever a library gives that opens files elsewhere."""
    state = {"model": {"w": wf.ones(2, 3)}, "epoch": 3}
    memory = io.BytesIO()
    wf.save(state, memory)
    memory.seek(0)
    assert wf.load(memory, map_location="cpu")["model"]["w"].tolist() == [[1.0] * 3] * 2
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"before")
        wf.save({"w": wf.ones(2)}, file)
        file.seek(len(b"before"))
        assert wf.load(file)["w"].tolist() == [1.0, 1.0]
    with pytest.raises(ArgumentError, match="mmap=True: expected a path, got BytesIO"):
        wf.load(io.BytesIO(b""), mmap=True)
    with pytest.raises(DataError):
        wf.load(io.BytesIO(b"nothing of the kind"))
