"""Damaged files: either exactly what was saved loads, or an error is raised, quickly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import weft
from tools.attack.mutation import mutated
from tools.attack.verdict import PLAIN, WRONG, Case, Verdict
from weft import nn, tf1
from weft.errors import WeftError

PATH = Path("saved.safetensors")
DIGITS = 8 << 20  # of the largest number in a header


class Base(NamedTuple):
    """A valid file, its contents, and how to read it."""

    name: str
    data: bytes
    holds: Any
    read: Callable[[], Any]


def begin() -> Case:
    """Writes the valid files."""
    bases = [_saved(name, value) for name, value in _values().items()] + [_checkpoint()]

    def case(random: np.random.Generator) -> Verdict:
        base = bases[int(random.integers(len(bases)))]
        data, how = _damaged(random, base.data)
        return judged(base, data, f"{base.name}: {how}")

    return case


def _values() -> dict[str, Any]:
    weft.manual_seed(0)
    model = nn.Sequential(nn.Linear(7, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = weft.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        model(weft.randn(4, 7)).square().mean().backward()
        optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 7}
    kinds = ("float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool")
    many = {kind: weft.arange(9).to(getattr(weft, kind)).reshape(3, 3) for kind in kinds}
    nested = {
        "a": [1, 2.5, None, True, "text", (weft.ones(2), {"b": weft.zeros(0, 3)})],
        3: {"rate": 1e-3, "": [], "é": weft.tensor(5)}, "a.0": weft.full((2, 2), 0.1),
    }  # fmt: skip
    return {
        "model and optimizer": state, "state dict": dict(model.state_dict()), "all types": many,
        "nested": nested, "large": {"w": weft.randn(200, 100), "b": weft.randn(100)},
        "empty": {}, "one tensor": weft.randn(3, 4),
    }  # fmt: skip


def _saved(name: str, value: Any) -> Base:
    weft.save(value, PATH)
    return Base(name, PATH.read_bytes(), flat(value), lambda: flat(weft.load(PATH)))


def _checkpoint() -> Base:
    """A `Saver` file; a refused file must leave the variables unchanged."""
    prefix = str(PATH.resolve()).removesuffix(".safetensors")
    with tf1.Graph().as_default():
        first = [np.arange(6.0, dtype=np.float32).reshape(2, 3), np.int64(7), np.ones(5)]
        variables = [tf1.Variable(tf1.constant(v), name=f"v{i}") for i, v in enumerate(first)]
        saver, session = tf1.train.Saver(), tf1.Session()
        session.run(tf1.global_variables_initializer())
        saver.save(session, prefix)
        whole = flat(session.run(variables))
        other = [tf1.assign(v, tf1.zeros_like(v)) for v in variables]
        session.run(other)
        zeros = flat(session.run(variables))

    def read() -> Any:
        try:
            saver.restore(session, prefix)
            found = flat(session.run(variables))
        except Exception:
            if flat(session.run(variables)) != zeros:
                return "refused, and variables have changed"
            raise
        session.run(other)
        return found

    return Base("Saver", PATH.read_bytes(), whole, read)


def flat(value: Any) -> Any:
    """Structure, names, numbers with their types, and tensors' dtypes, shapes and bits."""
    if isinstance(value, Mapping):
        return ("dict", [(flat(key), flat(part)) for key, part in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [flat(part) for part in value])
    if isinstance(value, weft.Tensor | np.ndarray | np.generic):
        array = np.asarray(value.numpy(force=True) if isinstance(value, weft.Tensor) else value)
        return ("tensor", str(array.dtype), array.shape, array.tobytes())
    return (type(value).__name__, repr(value))


def judged(base: Base, data: bytes, how: str) -> Verdict:
    """The verdict on a file with these bytes."""
    PATH.write_bytes(data)
    try:
        found = base.read()
    except (WeftError, tf1.errors.OpError):
        return Verdict()
    except Exception as error:
        kind = type(error).__name__
        return Verdict(PLAIN, f"{base.name}: {kind}", f"{how}\n{kind}: {error}"[:1000])
    if found == base.holds or _sorted(found) == _sorted(base.holds):
        return Verdict()
    where = difference(base.holds, found)
    return Verdict(WRONG, f"{base.name}: loads as something else", f"{how}\n{where}")


def difference(wanted: Any, found: Any) -> str:
    """The first difference between two flattened values."""
    if type(wanted) is type(found) and isinstance(wanted, list | tuple):
        for a, b in zip(wanted, found, strict=False):
            if a != b:
                return difference(a, b)
    return f"expected {wanted!r:.100}, got {found!r:.100}"


def _sorted(tree: Any) -> Any:
    """A dict of tensors only, in canonical order."""
    return sorted(tree[1], key=repr) if tree[0] == "dict" else tree


def _damaged(random: np.random.Generator, data: bytes) -> tuple[bytes, str]:
    length = int.from_bytes(data[:8], "little")
    if random.random() < 0.75:
        return mutated(random, data, 8 + length)
    header, rest = data[8 : 8 + length], data[8 + length :]
    change = HEADERS[int(random.integers(len(HEADERS)))]
    made = change(random, header)
    told = len(made) if random.random() < 0.9 else int(random.choice([0, 1, 2**40, 2**63, 7]))
    return told.to_bytes(8, "little") + made + rest, f"header {change.__name__[1:]}, said {told}"


def _doubled(random: np.random.Generator, header: bytes) -> bytes:
    """Duplicates a name, with another entry's description."""
    entries = list(json.loads(header).items())
    chosen = [entries[int(random.integers(len(entries)))] for _ in range(2)]
    entries.insert(int(random.integers(len(entries) + 1)), (chosen[0][0], chosen[1][1]))
    parts = [f"{json.dumps(k)}:{json.dumps(v, separators=(',', ':'))}" for k, v in entries]
    return ("{" + ",".join(parts) + "}").encode()


def _renumbered(random: np.random.Generator, header: bytes) -> bytes:
    """Replaces a number, possibly by an absurd one."""
    entries = json.loads(header)
    names = [name for name in entries if name != "__metadata__"]
    if not names:
        return header + b" "
    entry = entries[names[int(random.integers(len(names)))]]
    numbers = entry["shape" if entry["shape"] and random.random() < 0.5 else "data_offsets"]
    new = [0, 1, -1, 2**31, 2**62, 2**64, 10**25, 1.0, None, "1", True, [1]]
    numbers[int(random.integers(len(numbers)))] = new[int(random.integers(len(new)))]
    return json.dumps(entries).encode()


def _renamed(random: np.random.Generator, header: bytes) -> bytes:
    """Swaps two names, or replaces one."""
    entries = list(json.loads(header).items())
    i, j = (int(random.integers(len(entries))) for _ in range(2))
    names = [name for name, _ in entries]
    names[i], names[j] = (names[j], names[i]) if i != j else (names[i] + "x", names[i] + "x")
    return json.dumps({n: v for n, (_, v) in zip(names, entries, strict=True)}).encode()


def _retyped(random: np.random.Generator, header: bytes) -> bytes:
    """Changes an array's dtype to another of the same size, or to an unknown one."""
    types = [b"F32", b"I32", b"F64", b"I64", b"BF16", b"F16", b"I16", b"U8", b"I8", b"BOOL", b"X9"]
    places = [t for t in types if b'"' + t + b'"' in header]
    if not places:
        return header + b" "
    old, new = places[int(random.integers(len(places)))], types[int(random.integers(len(types)))]
    return header.replace(b'"' + old + b'"', b'"' + new + b'"', 1)


def _huge(random: np.random.Generator, header: bytes) -> bytes:
    """A header of megabytes: one long number, or nested brackets."""
    size = int(DIGITS * random.random()) + 1
    if random.random() < 0.5:
        return b'{"w":{"dtype":"F32","shape":[' + b"9" * size + b'],"data_offsets":[0,4]}}'
    return b'{"w":' * (size // 5) if random.random() < 0.5 else b"[" * size


Change = Callable[[np.random.Generator, bytes], bytes]
HEADERS: tuple[Change, ...] = (
    *(_doubled, _renumbered, _renamed, _retyped) * 4, _huge
)  # fmt: skip
