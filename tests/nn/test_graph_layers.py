"""Graph layers against dense matrices; edges to missing nodes."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ArgumentError, DTypeError, OutOfRangeError, ShapeError

NODES = 6
EDGES = np.array([[0, 1, 1, 2, 3, 3, 4, 0], [1, 0, 2, 1, 3, 0, 0, 1]])  # one twice, one to itself
WEIGHTS = np.array([0.5, 2.0, 1.5, 0.25, 3.0, 1.0, 0.75, 1.25], np.float32)


@pytest.fixture
def x():
    return wf.tensor(np.random.default_rng(0).standard_normal((NODES, 3)), dtype=wf.float32)


def matrix(weights=None, own=None):
    """`a[i, j]`: what goes from node j to node i."""
    a = np.zeros((NODES, NODES), np.float32)
    np.add.at(a, (EDGES[1], EDGES[0]), np.ones(8, np.float32) if weights is None else weights)
    if own is not None:
        a[np.diag_indices(NODES)] += own * (np.diag(a) == 0)
    return a


def value(y):
    return y.detach().numpy()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("own", [None, 1, 2])
@pytest.mark.parametrize("normalize", [False, True])
def test_convolution_is_a_product_with_the_normalized_matrix(x, weights, own, normalize):
    layer = nn.GCNConv(3, 2, improved=own == 2, add_self_loops=own is not None, normalize=normalize)
    layer.bias.data.fill_(0.5)
    a = matrix(weights, own)
    if normalize:
        degree = a.sum(1)
        root = np.where(degree > 0, np.maximum(degree, 1e-30) ** -0.5, 0).astype(np.float32)
        a = root[:, None] * a * root
    given = None if weights is None else wf.tensor(weights)
    y = layer(x, wf.tensor(EDGES), given)
    expected = a @ (x.numpy() @ value(layer.lin.weight).T) + 0.5
    np.testing.assert_allclose(value(y), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("aggr", ["mean", "sum", "max"])
def test_neighbors_are_combined(x, aggr):
    layer = nn.SAGEConv(3, 2, aggr)
    y = layer(x, wf.tensor(EDGES))
    found = np.zeros((NODES, 3), np.float32)
    for i in set(EDGES[1].tolist()):
        found[i] = getattr(np, aggr)(x.numpy()[EDGES[0][EDGES[1] == i]], axis=0)
    expected = layer.lin_l(wf.tensor(found)) + layer.lin_r(x)
    np.testing.assert_allclose(value(y), value(expected), rtol=1e-5, atol=1e-6)


def test_edges_between_nodes_of_two_kinds(x):
    layer = nn.SAGEConv((3, 4), 2, normalize=True, project=True)
    y = layer((x, wf.ones(2, 4)), wf.tensor(EDGES[:, :4] % [[6], [2]]))
    np.testing.assert_allclose(value(y.norm(dim=1)), [1, 1], rtol=1e-6)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("concat", [False, True])
def test_attention_is_a_softmax_over_neighbors(x, loops, concat):
    layer = nn.GATConv(3, 2, heads=2, concat=concat, add_self_loops=loops)
    y = layer(x, wf.tensor(EDGES))
    h = value(layer.lin(x)).reshape(NODES, 2, 2)
    source, target = (h * value(w) for w in (layer.att_src, layer.att_dst))
    counts = matrix()
    if loops:
        counts[np.diag_indices(NODES)] = 1
    scores = target.sum(-1)[:, None] + source.sum(-1)[None]
    powers = np.exp(np.where(scores > 0, scores, 0.2 * scores)) * counts[:, :, None]
    total = powers.sum(1, keepdims=True)
    shares = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    expected = np.einsum("tsh,shc->thc", shares, h)
    expected = expected.reshape(NODES, 4) if concat else expected.mean(1)
    np.testing.assert_allclose(value(y), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [nn.GCNConv, nn.SAGEConv, nn.GATConv])
def test_gradients(x, make):
    layer, edges = make(3, 2).double(), wf.tensor(EDGES)
    names, weights = zip(*layer.named_parameters(), strict=True)

    def run(x, *weights):
        return wf.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x, edges))

    inputs = [v.detach().double().requires_grad_() for v in (x, *weights)]
    assert wf.autograd.gradcheck(run, tuple(inputs))


def test_dropped_edges_do_not_count(x):
    wf.manual_seed(0)
    layer = nn.GATConv(3, 2, dropout=0.5)
    edges = wf.tensor(EDGES)
    whole = layer.eval()(x, edges)
    layer.train()
    mean = sum(layer(x, edges).detach() for _ in range(300)) / 300
    assert not np.allclose(value(layer(x, edges)), value(whole))
    np.testing.assert_allclose(mean, value(whole), atol=0.15)


@pytest.mark.parametrize("make", [nn.GCNConv, nn.SAGEConv, nn.GATConv])
def test_edges_to_nodes_that_are_not_there_raise(x, make):
    layer = make(3, 2)
    for end, text in ((0, r"edge_index\[0\]"), (1, r"edge_index\[1\]")):
        edges = EDGES.copy()
        edges[end, 3] = NODES
        with pytest.raises(OutOfRangeError, match=text + ": expected nodes that are there, from 0"):
            value(layer(x, wf.tensor(edges)))
    with pytest.raises(ShapeError, match=r"expected shape \(2, edges\), got \(8, 2\)"):
        layer(x, wf.tensor(EDGES.T.copy()))
    with pytest.raises(DTypeError, match="edge_index: expected integers, got float32"):
        layer(x, wf.rand(2, 8))
    with pytest.raises(ShapeError, match=r"expected x of shape \(nodes, 3\)"):
        layer(x[:, :2], wf.tensor(EDGES))
    assert layer(x, wf.zeros(2, 0, dtype=wf.int64)).shape == (NODES, 2)


def test_absent_names():
    with pytest.raises(ArgumentError, match="aggr: expected add, sum, mean, max, got 'median'"):
        nn.SAGEConv(3, 2, "median")(wf.ones(6, 3), wf.tensor(EDGES))
    with pytest.raises(ArgumentError, match="expected heads >= 1"):
        nn.GATConv(3, 2, heads=0)
