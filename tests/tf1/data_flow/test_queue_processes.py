"""A queue of a server, filled and emptied by threads of several processes."""

import json
import subprocess
import sys
from collections import Counter

import pytest

import weft.tf1 as tf

PROGRAM = """
import json, random, sys, threading
import weft.tf1 as tf

target, process = sys.argv[1], int(sys.argv[2])
q = tf.FIFOQueue(16, tf.int64, shapes=[[]], shared_name="shared")
x, n = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int32, [])
put, take, size = q.enqueue_many(x), q.dequeue_up_to(n), q.size()
sessions = [tf.Session(target) for _ in range(4)]
given, taken, undelivered = [], [], []

def fill(worker):
    for start in range(0, 200, 4):
        numbers = [process * 10000 + worker * 1000 + start + i for i in range(4)]
        try:
            sessions[worker].run(put, {x: numbers})
        except tf.errors.CancelledError:
            undelivered.extend(numbers)
        given.extend(numbers)

def drain(worker):
    draw = random.Random(process * 10 + worker)
    while True:
        try:
            taken.extend(sessions[worker].run(take, {n: draw.randrange(1, 5)}).tolist())
        except (tf.errors.CancelledError, RuntimeError) as error:
            if isinstance(error, tf.errors.OutOfRangeError):
                return
            sessions[worker] = tf.Session(target)  # it was closed while it waited

fillers = [threading.Thread(target=fill, args=(w,)) for w in (0, 1)]
drainers = [threading.Thread(target=drain, args=(w,), daemon=True) for w in (2, 3)]
for thread in fillers + drainers:
    thread.start()
for _ in range(3):
    sys.stdin.readline()
    sessions[2].close()
for thread in fillers:
    thread.join()
print("filled", flush=True)
for thread in drainers:
    thread.join()
print(json.dumps([given, taken, undelivered]))
"""


@pytest.mark.slow
def test_four_processes_lose_and_duplicate_nothing():
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default(), tf.Session(server.target) as session:
        q = tf.FIFOQueue(16, tf.int64, shapes=[[]], shared_name="shared")
        running = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, server.target, str(number)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for number in range(4)
        ]  # fmt: skip
        try:
            for _ in range(3):  # dequeues of each process are cancelled meanwhile
                for process in running:
                    process.stdin.write("\n")
                    process.stdin.flush()
            assert [p.stdout.readline() for p in running] == ["filled\n"] * 4
            session.run(q.close())
            found = [json.loads(p.communicate(timeout=60)[0]) for p in running]
        finally:
            for process in running:
                process.kill()
                process.wait()
    given, taken, undelivered = [Counter(n for f in found for n in f[i]) for i in range(3)]
    assert not taken - given and not undelivered
    assert given - taken == Counter()
    assert sum(taken.values()) == 4 * 2 * 200
