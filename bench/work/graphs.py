"""Graphs of 100,000 nodes and 1 M edges, rows of 64 floats; a mixture of experts and one layer.

`graphs:sorted` and `graphs:unsorted` sum a row an edge by node, `graphs:product` multiplies a
sparse matrix with a dense one, `graphs:network` is a training step of two graph convolutions.
`graphs:experts` is a training step of eight experts, one a token, on 4,096 tokens.
"""

from __future__ import annotations

import numpy as np

NODES, EDGES, WIDTH = 100_000, 1_000_000, 64
TOKENS, FEATURES, HIDDEN, EXPERTS = 4096, 512, 2048, 8
BYTES = 4 * (EDGES * WIDTH + NODES * WIDTH + EDGES)  # rows and ids read, sums written


def _rows():
    return np.random.default_rng(0).standard_normal((EDGES, WIDTH), np.float32)


def _ids(task):
    ids = np.random.default_rng(1).integers(0, NODES, EDGES)
    return np.sort(ids) if task == "sorted" else ids


def _sparse():
    """indptr, indices, values and the dense matrix."""
    rng = np.random.default_rng(2)
    indptr = np.searchsorted(_ids("sorted"), np.arange(NODES + 1)).astype(np.int32)
    indices = rng.integers(0, NODES, EDGES).astype(np.int32)
    values = rng.standard_normal(EDGES, np.float32)
    return indptr, indices, values, rng.standard_normal((NODES, WIDTH), np.float32)


def _graph():
    """Features, edges and classes."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((NODES, WIDTH), np.float32)
    return x, rng.integers(0, NODES, (2, EDGES)), rng.integers(0, 8, NODES)


def weft(threads, task):
    import weft as wf

    if task == "product":
        a = [wf.tensor(x) for x in _sparse()]
        return lambda: wf.sparse.csr_matmul(*a).numpy()
    if task == "network":
        return _network(wf, wf.nn.GCNConv)
    if task == "experts":
        return _layer(
            wf, wf.nn.MixtureOfExperts(FEATURES, HIDDEN, EXPERTS, capacity_factor=1.0), True
        )
    return _sums(task)


def _sums(task):
    import weft.tf1 as tf

    if task == "sorted":
        return _sorted_sums()
    x, ids = tf.Variable(_rows()), tf.Variable(_ids(task).astype(np.int32))
    y = tf.Variable(np.zeros((NODES, WIDTH), np.float32))
    return _session(tf.assign(y, tf.unsorted_segment_sum(x, ids, NODES)))


def _sorted_sums():
    import weft as wf

    x, ids = wf.tensor(_rows()), wf.tensor(_ids("sorted").astype(np.int32))
    return lambda: wf.sparse.segment_sum(x, ids, NODES, indices_are_sorted=True).numpy()


def _session(assignment):
    import weft.tf1 as tf

    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session.make_callable(assignment.op)


def weft_copy(threads, task):
    """A copy of the rows."""
    import weft.tf1 as tf

    x, y = tf.Variable(_rows()), tf.Variable(np.zeros((EDGES, WIDTH), np.float32))
    return _session(tf.assign(y, x))


def weft_dense(threads, task):
    """One layer with the arithmetic of the experts."""
    import weft as wf

    layer = wf.nn.Sequential(
        wf.nn.Linear(FEATURES, HIDDEN), wf.nn.GELU(), wf.nn.Linear(HIDDEN, FEATURES)
    )
    return _layer(wf, layer, False)


def _layer(framework, layer, is_mixture):
    """A step of stochastic gradient descent."""
    x = framework.randn(TOKENS, FEATURES)
    optimizer = framework.optim.SGD(layer.parameters(), lr=1e-3)

    def step():
        found = layer(x)
        y = found.output if is_mixture else found
        loss = y.square().mean()
        if is_mixture:
            loss = loss + 0.01 * found.balance_loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    return step


def _network(framework, convolution):
    x, edges, classes = map(framework.tensor, _graph())
    layers = framework.nn.ModuleList([convolution(WIDTH, WIDTH), convolution(WIDTH, 8)])
    optimizer = framework.optim.SGD(layers.parameters(), lr=1e-2)

    def step():
        h = framework.relu(layers[0](x, edges))
        loss = framework.nn.functional.cross_entropy(layers[1](h, edges), classes)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss)

    return step


def torch(threads, task):
    import torch

    torch.set_num_threads(threads)
    if task == "product":
        indptr, indices, values, x = map(torch.from_numpy, _sparse())
        a = torch.sparse_csr_tensor(indptr, indices, values, size=(NODES, NODES))
        return lambda: torch.mm(a, x)
    if task == "network":
        return _network(torch, _torch_convolution())
    if task == "experts":
        layer = torch.nn.Sequential(
            torch.nn.Linear(FEATURES, HIDDEN), torch.nn.GELU(), torch.nn.Linear(HIDDEN, FEATURES)
        )
        return _layer(torch, layer, False)
    x, ids = torch.from_numpy(_rows()), torch.from_numpy(_ids(task))
    y = torch.zeros(NODES, WIDTH)
    return lambda: y.zero_().index_add_(0, ids, x)


def _torch_convolution():
    """A graph convolution as PyTorch Geometric writes it without libraries of its own."""
    import torch

    class Convolution(torch.nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.lin = torch.nn.Linear(inputs, outputs, bias=False)
            self.bias = torch.nn.Parameter(torch.zeros(outputs))

        def forward(self, x, edges):
            nodes = torch.arange(NODES)
            source, target = torch.cat([edges, torch.stack([nodes, nodes])], 1)
            degree = torch.zeros(NODES).index_add_(0, target, torch.ones(len(target)))
            root = degree**-0.5
            messages = self.lin(x)[source] * (root[source] * root[target])[:, None]
            y = torch.zeros(NODES, messages.shape[1]).index_add_(0, target, messages)
            return y + self.bias

    return Convolution


def numpy(threads, task):
    x, ids = _rows(), _ids(task)
    starts = np.searchsorted(ids, np.arange(NODES)) if task == "sorted" else None
    y = np.zeros((NODES, WIDTH), np.float32)

    def step():
        if starts is not None:
            return np.add.reduceat(x, starts, axis=0)
        y[...] = 0
        return np.add.at(y, ids, x)

    return step


def scipy(threads, task):
    from scipy.sparse import csr_array

    indptr, indices, values, x = _sparse()
    a = csr_array((values, indices, indptr), shape=(NODES, NODES))
    return lambda: a @ x
