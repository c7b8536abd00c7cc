"""Random graphs with random placements over the tasks of a cluster, against one device."""

import numpy as np
import pytest
from drawn_partition import Drawn

from weft import ops
from weft.cluster.client import ClientSession
from weft.cluster.variables import Variables
from weft.ops.boundary.state import counter, variable
from weft.ops.declaration import op_of
from weft.passes.step import Request


class Sent(Drawn):
    """A drawn step without Python functions, which stay in their process."""

    def __init__(self, seed):
        super().__init__(seed, python=False)

    def _called(self, i, y):
        return ops.tanh(y - 0.5 * i)

    def cluster(self, target, runs=2):
        """The results of each run and the variables after it, over the tasks of a cluster."""
        session = ClientSession(target)
        try:
            placed = self.placed(list(session.devices))
            homes = {
                str(n.attrs["key"]): device
                for n, device in placed.items()
                if op_of(n) in (variable, counter)
            }
            state = Variables(session, homes.get)
            for device in session.devices:  # of another graph, on another task
                session.ask(device, "delete", list(self.state))
            state.put(self.state)
            feeds, fetches = tuple(self.feeds), tuple(self.fetches)
            run = session.function(
                Request(self.graph, fetches, tuple(self.targets), feeds, frozenset(), placed)
            )
            return self._runs(lambda: run(self.arrays, state), state, runs)
        finally:
            session.close()

    def _runs(self, run, state, runs):
        found = []
        for _ in range(runs):
            results = [np.asarray(y) for y in run()]
            found.append([(y.shape, y.tobytes()) for y in results])
            found.append([(key, state[key].tobytes()) for key in sorted(self.state)])
        return found


def compare(cluster, seeds):
    for seed in seeds:
        target = cluster.target("worker" if seed % 3 else "ps")
        assert Sent(seed).cluster(target) == Sent(seed).one(), seed


def test_drawn_graphs(cluster):
    compare(cluster, range(100, 104))


@pytest.mark.slow
def test_many_drawn_graphs(cluster):
    compare(cluster, range(150))
