"""Files of arrays: what is written comes back, other libraries read it, damage is found."""

import itertools
import json
import random
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from mutation import mutated
from safetensors.numpy import load_file, save_file
from strategies import at_most

import weft as wf
from weft import errors
from weft.eager.record.memory import memory_pool
from weft.formats import safetensors as arrays_module
from weft.formats import safetensors_header as header_module
from weft.formats.safetensors import read_arrays, write_arrays

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", ml_dtypes.bfloat16]


@at_most(30)
@given(st.data())
def test_what_is_written_round_trips(tmp_path_factory, data):
    names = data.draw(
        st.lists(st.text(min_size=1).filter(lambda n: n != "__metadata__"), unique=True)
    )
    arrays = {}
    for name in names:
        shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
        array = (
            np.random.default_rng(0)
            .integers(0, 2, shape)
            .astype(data.draw(st.sampled_from(DTYPES)))
        )
        arrays[name] = (
            np.asfortranarray(array)
            if data.draw(st.booleans())
            else array[..., ::-1]
            if shape
            else array
        )
    path = tmp_path_factory.mktemp("arrays") / "a.safetensors"
    write_arrays(path, arrays, {"note": "ä"})
    found = read_arrays(path, mapped=data.draw(st.booleans()))
    assert found.metadata == {"note": "ä"} and found.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found.arrays[name].dtype == array.dtype
        assert np.array_equal(found.arrays[name], array)


def test_the_formats_own_library_reads_and_writes_the_same(tmp_path):
    arrays = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "n": np.array([True, False]),
        "i": np.array(3),
    }
    write_arrays(tmp_path / "a", arrays)
    for name, array in load_file(tmp_path / "a").items():
        assert np.array_equal(array, arrays[name]) and array.dtype == arrays[name].dtype
    save_file(arrays, tmp_path / "b")
    for name, array in read_arrays(tmp_path / "b").arrays.items():
        assert np.array_equal(array, arrays[name]) and array.dtype == arrays[name].dtype


def test_mapped_tensors_are_verified_and_change_without_the_file(tmp_path):
    path = tmp_path / "a.safetensors"
    weights = {"w": wf.randn(70, 33), "b": wf.arange(5)}
    wf.save(weights, path)
    before = path.read_bytes()
    found = wf.load(path, mmap=True)
    product = (wf.ones(2, 70) @ found["w"]).numpy()
    np.testing.assert_allclose(
        product, wf.ones(2, 70).numpy() @ weights["w"].numpy(), rtol=1e-4, atol=1e-5
    )
    found["b"] += 1
    assert found["b"].tolist() == [1, 2, 3, 4, 5]
    wf.save({"other": wf.zeros(3)}, path)  # replaces the file
    assert found["w"].tolist() == weights["w"].tolist()
    path.write_bytes(before)
    assert wf.load(path)["b"].tolist() == [0, 1, 2, 3, 4]
    path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(errors.DataError, match=r"the bytes of '.' do not match their checksum"):
        wf.load(path, mmap=True)
    path.write_bytes(before[:-1])
    with pytest.raises(errors.DataError, match="damaged"):
        wf.load(path, mmap=True)


def test_types_that_the_format_lacks_raise(tmp_path):
    with pytest.raises(errors.DTypeError, match="save: 'z': expected numbers, got <U1"):
        write_arrays(tmp_path / "a", {"z": np.array(["x"])})
    assert not list(tmp_path.iterdir())


STATE = {
    "lr": np.array(0.001), "model.w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "model.b": np.ones(3, np.float32), "step": np.array(7), "empty": np.zeros((0, 2), np.uint8),
}  # fmt: skip


def test_every_damaged_byte_of_a_small_file_is_found(tmp_path):
    path = tmp_path / "a"
    write_arrays(path, {"w": np.arange(3, dtype=np.float32), "b": np.ones(2, np.uint8)})
    whole = path.read_bytes()
    for place in range(len(whole)):
        for change in (1, 0x20):
            broken = bytearray(whole)
            broken[place] ^= change
            path.write_bytes(broken)
            with pytest.raises(errors.DataError, match=f"load: {path}"):
                read_arrays(path)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(errors.DataError, match="damaged, or not a safetensors file"):
            read_arrays(path)


@pytest.mark.parametrize("metadata", [{}, {"weft.tree": '[["plain",0.001]]', "note": "x"}])
def test_no_damage_goes_unnoticed(tmp_path, metadata):
    path, draw = tmp_path / "a", random.Random(0)
    write_arrays(path, STATE, metadata)
    whole = path.read_bytes()
    for _ in range(400):
        path.write_bytes(mutated(whole, draw))
        with pytest.raises(errors.DataError, match="load: "):
            read_arrays(path)


def parts(path):
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


@pytest.mark.parametrize(
    "gone", [["weft.sha256"], ["weft.crc32"], ["weft.sha256", "weft.crc32", "weft.tree"], []]
)
def test_a_file_of_ours_without_its_checksums_raises(tmp_path, gone):
    path = tmp_path / "a"
    write_arrays(path, STATE, {"weft.tree": "[]"})
    header, content = parts(path)
    for key in gone:
        del header["__metadata__"][key]
    if not gone:
        del header["__metadata__"]
    path.write_bytes(file_of(header, content))
    with pytest.raises(errors.DataError, match=r"checksums are gone|does not match its digest"):
        read_arrays(path)


def test_numbers_without_bound_take_no_time(tmp_path):
    digits = "9" * 4000
    shapes = [f"[{','.join([digits] * 2000)}]", f"[{','.join(['9' * 19] * 400_000)}]"]
    shapes += ["[" + "9" * 8_000_000 + "]", "[" * 500_000 + "]" * 500_000]
    start = time.process_time()
    for shape in shapes:
        text = f'{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,4]}}}}'
        (tmp_path / "a").write_bytes(file_of(text.encode(), b"1234"))
        with pytest.raises(errors.DataError, match=r"number of|dimensions|its header"):
            read_arrays(tmp_path / "a")
    assert time.process_time() - start < 10  # it was minutes


def test_what_cannot_be_read_back_is_not_written(tmp_path, monkeypatch):
    with pytest.raises(errors.ArgumentError, match="other names than '__metadata__'"):
        write_arrays(tmp_path / "a", {"__metadata__": np.ones(1)})
    monkeypatch.setattr(header_module, "LONGEST_HEADER", 300)
    with pytest.raises(errors.DataError, match=r"take \d+ bytes: expected 300 at most"):
        write_arrays(tmp_path / "a", {"x" * 300: np.ones(1)})
    assert not list(tmp_path.iterdir())


def file_of(header, content=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def entry(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged, or not a safetensors file: empty"),
        ((1 << 60).to_bytes(8, "little"), "its header is not an object"),
        (file_of([]), "is not an object"),
        (file_of(b"[" * 100000), "its header"),
        (file_of({"__metadata__": {"a": 1}}), "metadata are not strings"),
        (file_of({"__metadata__": {"weft.crc32": ""}}), "its checksums are gone"),
        (file_of({"__metadata__": {"weft.sha256": "0" * 64}}), "its checksums are gone"),
        (file_of(b'{"a":1,"a":1}'), "a duplicate name"),
        (file_of({"a": entry(dtype=[[]])}, b"1234"), "its entry for 'a'"),
        (file_of({"a": entry(shape=[1] * 65)}, b"1234"), "'a' has 65 dimensions"),
        (file_of({"a": 3}), "its entry for 'a'"),
        (file_of({"a": entry(shape=(-1,))}), "its entry for 'a'"),
        (file_of({"a": entry(shape=(True,))}), "its entry for 'a'"),
        (file_of({"a": entry()}), "expected 4 bytes of arrays, got 0"),
        (file_of({"a": entry()}, b"12345"), "expected 4 bytes of arrays, got 5"),
        (file_of({"a": entry(offsets=(4, 8))}, b"12345678"), "begins at 4, not 0"),
        (file_of({"a": entry(), "b": entry()}, b"1234"), "begins at 0, not 4"),
        (file_of({"a": entry(shape=(2,))}, b"1234"), "takes 4 bytes for F32 of shape"),
        (file_of({"a": entry(shape=(0, 1 << 62), offsets=(0, 0))}), "'a': "),
        (file_of({"a": entry("F4", offsets=(0, 1))}, b"1"), "expected 'a' of BOOL, I8"),
    ],
    ids=[str(i) for i in range(20)],
)
def test_what_no_writer_writes_raises(tmp_path, content, why):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(errors.DataError) as error:
        read_arrays(path)
    assert why in str(error.value)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_arrays(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        write_arrays(tmp_path / "no folder" / "a", {})


@pytest.mark.parametrize("most", [0, 256, 1 << 24])
def test_small_arrays_share_memory_that_each_lends_alone(tmp_path, monkeypatch, most):
    monkeypatch.setattr(arrays_module, "SHARED_BYTES", most)
    written = {f"a{n}": np.arange(n * 7, dtype=np.float32) for n in range(12)}
    path = tmp_path / "a"
    write_arrays(path, written)
    found = read_arrays(path).arrays
    assert found.keys() == written.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, written[name])
        assert array.ctypes.data % 64 == 0 or not array.size
        assert array.flags.writeable
    places = sorted([array.ctypes.data for array in found.values() if array.size])
    near = [b - a <= 384 for a, b in itertools.pairwise(places)]
    assert all(near) or most != 1 << 24
    tensors = wf.load(path)
    shown = tensors["a3"].numpy()
    lent = {name: memory_pool.is_lent(tensor.array) for name, tensor in tensors.items()}
    assert lent == {name: name == "a3" for name in written} and len(shown) == 21


def test_complex_numbers_come_back(tmp_path):
    arrays = {"a": np.array([1 + 2j, complex(-0.0, np.inf)], np.complex64), "b": np.ones(3) * 1j}
    write_arrays(tmp_path / "a", arrays)
    found = read_arrays(tmp_path / "a").arrays
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("kind", "ones"),
    {"F8_E4M3": 0x38, "F8_E5M2": 0x3C, "F8_E8M0": 0x7F, "F8_E4M3FNUZ": 0x40, "F8_E5M2FNUZ": 0x40}
    .items(),
)  # fmt: skip
@pytest.mark.parametrize("mapped", [False, True])
def test_float8_becomes_float32(tmp_path, kind, ones, mapped):
    header = {"a": entry(kind, (2,), (0, 2)), "b": entry("U8", (1,), (2, 3))}
    (tmp_path / "a").write_bytes(file_of(header, bytes([ones, ones, 7])))
    found = read_arrays(tmp_path / "a", mapped).arrays
    assert found["a"].dtype == np.float32 and found["a"].tolist() == [1.0, 1.0]
    assert found["b"].tolist() == [7]


def test_other_formats_are_recognized(tmp_path):
    table = b"\0" * 40 + (0xDB4775248B80FB57).to_bytes(8, "little")
    for content, told in (
        (b"\x89HDF\r\n\x1a\n" + bytes(90), "is an HDF5 file"),
        (b"\x93NUMPY\x01\0v\0" + bytes(90), "is a NumPy .npy file: use numpy.load"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is a pointer of Git LFS"),
        (b"\x80\x04\x95" + bytes(20), "is a pickle: Weft runs none"),
        (b"\x1f\x8b\x08" + bytes(20), "is compressed by gzip"),
        (bytes(range(1, 200)) + bytes(58) + b"ustar\0" + bytes(100), "is a tar archive"),
        (b"<!doctype html><html>", "is an HTML or XML page"),
        (b'{"metadata": {}, "weight_map": {}}', "is JSON"),
        (table[8:] + table, "is a TensorFlow checkpoint"),
    ):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(errors.DataError, match=told):
            read_arrays(tmp_path / "a")
