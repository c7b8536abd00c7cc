"""Storages: the memory that views share, also of a file that is mapped."""

import numpy as np
import pytest

import weft as wf
from weft.eager.tensor.view.storage import UntypedStorage


def test_views_share_a_storage():
    x = wf.arange(6.0).reshape(2, 3)
    part = x[1]
    assert part.untyped_storage() == x.untyped_storage() != wf.zeros(6).untyped_storage()
    assert part.untyped_storage().data_ptr() == x.data_ptr() != part.data_ptr()
    assert (x.untyped_storage().nbytes(), x.storage().size()) == (24, 6)
    assert wf.zeros(0).untyped_storage().data_ptr() == 0


def test_a_file_is_mapped_and_not_written_to(tmp_path):
    path = tmp_path / "file"
    np.arange(8, dtype="f4").tofile(path)
    bytes_ = UntypedStorage.from_file(path, nbytes=32).untyped()
    x = wf.asarray(bytes_[8:24], dtype=wf.uint8).view(dtype=wf.float32).reshape([2, 2])
    x[0, 0] = 9.0
    assert x.tolist() == [[9.0, 3.0], [4.0, 5.0]]
    assert np.fromfile(path, "f4").tolist() == list(range(8))
    with pytest.raises(NotImplementedError, match="shared=False"):
        UntypedStorage.from_file(path, shared=True)
