"""What a cluster under attack has kept: in its last checkpoint, and on its parameter servers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import weft.tf1 as tf

TRIES = 50


def checkpointed(folder: Path, trainers: int) -> list[int]:
    """The counters in the last checkpoint; zeros if there is none."""
    for _ in range(TRIES):
        found = tf.train.latest_checkpoint(str(folder)) if folder.exists() else None
        if found is None:
            return [0] * trainers
        try:
            reader = tf.train.load_checkpoint(found)
            return [int(reader.get_tensor(f"counter{i}")) for i in range(trainers)]
        except (tf.errors.OpError, OSError, ValueError):  # replaced meanwhile by the next
            time.sleep(0.02)
    raise AssertionError(f"no checkpoint in {folder} can be read")


def values(spec: Mapping[str, Sequence[str]], trainers: int) -> dict[str, Any]:
    """The variables on the parameter servers, as a new client sees them."""
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=tf.train.ClusterSpec(dict(spec)))):
            step = tf.train.get_or_create_global_step()
            counters = [tf.get_variable(f"counter{i}", [], tf.int64) for i in range(trainers)]
        config = tf.ConfigProto(device_filters=["/job:ps"])
        with tf.Session(f"grpc://{spec['ps'][0]}", config=config) as session:
            found = session.run([step, *counters])
    return {"step": int(found[0]), "counters": [int(c) for c in found[1:]]}
