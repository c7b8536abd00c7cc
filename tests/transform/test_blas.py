"""NumPy's matmul runs on one thread."""

import numpy as np

from weft.transform import blas


def test_the_number_of_threads_is_restored():
    if blas._set is None:  # another library: nothing to set, and nothing to put back
        assert np.show_config("dicts")["Build Dependencies"]["blas"]["name"] != "scipy-openblas"
        return
    first = blas._set(2)
    try:
        with blas.single_thread():
            assert blas._set(1) == 1
        assert blas._set(2) == 2
    finally:
        blas._set(first)
