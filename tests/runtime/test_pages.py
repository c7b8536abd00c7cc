"""Large variables: what is zero takes no memory, and rows touch their own pages only."""

from __future__ import annotations

import gc
import os
from types import SimpleNamespace

import numpy as np
import pytest

import weft.tf1 as tf
from weft import config
from weft.errors import ConfigError, OutOfMemoryError
from weft.runtime.memory.budget import Budget
from weft.runtime.memory.pages import LARGE, FilePages, MemoryPages, Pages
from weft.runtime.memory.state import State

ROWS, WIDTH = 1 << 17, 1024  # 512 MiB
MUCH = 64 << 20


def resident():
    with open("/proc/self/statm", encoding="ascii") as text:
        return int(text.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(params=["memory", "file"])
def folder(request, tmp_path):
    path = str(tmp_path) if request.param == "file" else ""
    before = str(config.get("variable_folder"))
    config.change("variable_folder", path)  # for the threads of a server too
    yield path
    config.change("variable_folder", before)


@pytest.fixture(params=["local", "two devices", "server"])
def session(request):
    """How to open a session in the current graph."""
    if request.param == "server":
        server = tf.train.Server.create_local_server()
        yield lambda: tf.Session(server.target)
        server.stop()
    else:
        count = {"CPU": 1 + (request.param == "two devices")}
        yield lambda: tf.Session(config=tf.ConfigProto(device_count=count))


def test_zeros_and_rows_of_a_large_variable_touch_only_what_they_must(folder, session):
    with tf.Graph().as_default():
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.zeros_initializer())
        ids = tf.placeholder(tf.int32, [None])
        rows = tf.gather(table, ids)
        loss = tf.reduce_sum(rows)
        train = tf.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
        added = tf.scatter_add(table, ids, tf.ones([4, WIDTH])).op
        before = tf.identity(rows)
        with tf.control_dependencies([before]):
            cleared = table.initializer
        some = [5, 70_000, 130_000, 99]
        with session() as run:
            began = resident()
            run.run(tf.global_variables_initializer())
            assert run.run(loss, {ids: some}) == 0
            run.run(train, {ids: some})
            run.run(added, {ids: some})
            assert run.run(rows, {ids: [5, 6]}).tolist() == [[0.5] * WIDTH, [0.0] * WIDTH]
            assert resident() - began < MUCH
            with pytest.raises(tf.errors.InvalidArgumentError):
                run.run([before, cleared], {ids: [ROWS]})  # no variable has changed
            found, _ = run.run([before, cleared], {ids: some})
            assert found.tolist() == [[0.5] * WIDTH] * 4
            assert run.run(loss, {ids: some}) == 0
            run.run(added, {ids: some})
            assert run.run(loss, {ids: some}) == 4 * WIDTH
            if folder:
                assert os.listdir(folder) == []


@pytest.mark.parametrize("make", [MemoryPages, lambda size: FilePages(size, "/tmp")])
def test_cleared_pages_are_zero_and_given_back(make):
    pages: Pages = make(2 * MUCH)
    began = resident()
    pages.bytes[...] = 1
    assert resident() - began > MUCH
    pages.clear()
    assert resident() - began < MUCH // 4
    assert not pages.bytes.any()


def test_a_file_system_without_holes_gets_zeros(tmp_path, monkeypatch):
    pages = FilePages(1 << 20, str(tmp_path))
    pages.bytes[...] = 1

    def refused():
        raise OSError

    monkeypatch.setattr(pages, "_give_back", refused)
    pages.clear()
    assert not pages.bytes.any()


def test_a_disk_has_room_for_all_variables_in_full(tmp_path, monkeypatch):
    free = SimpleNamespace(f_bavail=1000, f_frsize=1 << 20)
    monkeypatch.setattr(os, "statvfs", lambda path: free)
    gc.collect()
    first = FilePages(600 << 20, str(tmp_path))
    with pytest.raises(OutOfMemoryError, match=r"may take 629,145,600; expected room for 524,288,"):
        FilePages(500 << 20, str(tmp_path))
    first.bytes[: 200 << 20] = 1
    FilePages(500 << 20, str(tmp_path))  # 400 MiB may still be taken, and 100 are left beside them
    with pytest.raises(ConfigError, match=r"WEFT_VARIABLE_FOLDER: .*/absent: No such file"):
        FilePages(LARGE, str(tmp_path / "absent"))


def test_what_memory_has_no_room_for_may_be_in_files():
    with pytest.raises(OutOfMemoryError, match=r"cannot map .* WEFT_VARIABLE_FOLDER=FOLDER puts"):
        MemoryPages(1 << 50)


def test_a_budget_counts_large_variables_in_memory(tmp_path):
    budget = Budget("CPU:0", LARGE + 100)
    state, shape, kind = State(budget), (LARGE,), np.dtype(np.uint8)
    with config.override(variable_folder=str(tmp_path)):
        state.set_zeros("in a file", shape, kind)
    state.set_zeros("v", shape, kind)
    assert budget.taken == LARGE
    with pytest.raises(OutOfMemoryError, match="CPU:0 cannot take"):
        state.set_zeros("w", shape, kind)
    state.set_zeros("v", (3,), kind)  # small now
    gc.collect()
    assert budget.taken < 1000
    assert state["v"].tolist() == [0, 0, 0]
