"""Seeds of what is random in datasets and queues: from the graph's seed and their own."""

from __future__ import annotations

from weft.host.mix import mix
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.random.distribution import DEFAULT_GRAPH_SEED


def order_seed(seed: int | None) -> int | None:
    """The seed of a random order; `None` without any seed: the order then differs from run to run.

    As for random tensors: with the graph's seed alone, what is built in the same place of the same
    program gets the same seed.
    """
    graph = get_default_graph()
    if graph.seed is None:
        return None if seed is None else mix(DEFAULT_GRAPH_SEED, int(seed))
    own = mix(graph.version, graph.next_op_seed()) if seed is None else int(seed)
    return mix(int(graph.seed), own)
