"""Without compiler processes, programs are interpreted: the same results, and a warning."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EAGER = """
    import weft as wf
    wf.manual_seed(0)
    model = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.Tanh(), wf.nn.Linear(8, 1))
    optimizer = wf.optim.Adam(model.parameters(), lr=0.1)
    call = wf.func.jit(lambda x: (x * 2).sum())
    for step in range(6):
        x = wf.arange(12.0).reshape(3, 4) / 10
        loss = (model(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.4f} {call(x).item():.4f}")
    for length in range(3, 16):  # where one program for many sizes would be made
        x = wf.ones(length, 4)
        print(f"{wf.softmax(model(x), 0).sum().item():.4f}")
"""
TF1 = """
    import numpy as np
    import weft.tf1 as tf
    x = tf.placeholder(tf.float32, (None, 4))
    w = tf.Variable(tf.ones((4, 2)))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    noise = tf.random_normal((), seed=3)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for step in range(4):
            print(f"{sess.run([train, loss], {x: np.ones((3, 4))})[1]:.4f}")
            print(f"{sess.run(noise):.4f}")
        print(f"{sess.run(w)[0, 0]:.4f}")
        try:
            sess.run(loss, {x: np.ones((3, 5))})
        except tf.errors.InvalidArgumentError:
            print("refused")
"""


def run(code: str, prelude: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", prelude + textwrap.dedent(code)],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, **settings},
    )  # fmt: skip


@pytest.mark.parametrize(
    "code", [EAGER, pytest.param(TF1, marks=pytest.mark.slow)], ids=["eager", "tf1"]
)
def test_programs_do_without_a_compiler(tmp_path, code):
    wanted = run(code, "", WEFT_CACHE=str(tmp_path / "a"))
    assert wanted.returncode == 0 and wanted.stderr == "" and wanted.stdout
    broken = "import sys\nsys.executable = '/nonexistent/python'\n"
    found = run(code, broken, WEFT_CACHE=str(tmp_path / "b"))
    assert found.stdout == wanted.stdout and found.returncode == 0, found.stderr
    (line,) = found.stderr.splitlines()
    assert "RuntimeWarning: nothing is compiled: cannot start a compiler process" in line
    found = run(code, broken, WEFT_CACHE=str(tmp_path / "a"))  # programs on disk need none
    assert (found.stdout, found.stderr) == (wanted.stdout, "")
