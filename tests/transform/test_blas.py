"""NumPy's matmul runs on one thread."""

import threading

import numpy as np
import pytest

from weft.transform import blas
from weft.transform.blas import LIBRARY, Library, single_thread


def test_the_library_is_found():
    if np.show_config("dicts")["Build Dependencies"]["blas"]["name"] == "scipy-openblas":
        assert Library() != LIBRARY


def test_the_number_of_threads_is_restored():
    if LIBRARY.set_local is not None:
        number = first = LIBRARY.set_local(2)
        try:
            with single_thread():
                assert LIBRARY.set_local(1) == 1
            number = LIBRARY.set_local(2)
        finally:
            LIBRARY.set_local(first)
        assert number == 2
    elif LIBRARY.get_shared is not None:
        before = LIBRARY.get_shared()
        with single_thread():
            assert LIBRARY.get_shared() == 1
        assert LIBRARY.get_shared() == before


def test_a_limit_of_the_process_ends_with_its_last_thread(monkeypatch):
    monkeypatch.setattr(blas, "_shared", blas._Shared())
    number = [4]
    library = Library(None, lambda n: number.__setitem__(0, n), lambda: number[0])
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with single_thread(library):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with single_thread(library):
        thread.start()
        entered.wait()
    assert number == [1]  # the other thread is still inside
    leave.set()
    thread.join()
    assert number == [4]
    with pytest.raises(ZeroDivisionError), single_thread(library):
        _ = 1 / (number[0] - 1)
    assert number == [4]
