"""Optimizers and schedulers against PyTorch, step by step."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from weft import optim  # noqa: E402
from weft.eager.tensor.dispatch import leaf, wrap  # noqa: E402
from weft.errors import OptimizerError  # noqa: E402
from weft.optim import lr_scheduler  # noqa: E402

OPTIMIZERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "maximize": True}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.99), "eps": 1e-3}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.0}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.9}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-3, 0.1), "d": 2.0, "maximize": True}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "maximize": True}),
    ("Adamax", {"weight_decay": 0.1}),
    ("Adamax", {"lr": 0.1, "betas": (0.8, 0.9), "maximize": True}),
    ("NAdam", {"weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("NAdam", {"momentum_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"betas": (0.8, 0.9), "maximize": True}),
    ("Rprop", {"lr": 0.1}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (0.01, 0.02), "maximize": True}),
    ("ASGD", {"weight_decay": 0.1, "lambd": 0.1}),
    ("ASGD", {"t0": 1, "maximize": True}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_optimizer(name, options, dtype):
    rng = np.random.default_rng(0)
    starts = [rng.standard_normal(s).astype(dtype) for s in ((3, 4), (5,), ())]
    theirs = [torch.tensor(a, requires_grad=True) for a in starts]
    ours = [wrap(leaf(a.copy())).requires_grad_() for a in starts]
    their, our = (
        getattr(torch.optim, name)(theirs, **options),
        getattr(optim, name)(ours, **options),
    )
    for step in range(6):
        for i, (p, q) in enumerate(zip(theirs, ours, strict=True)):
            if i == 1 and step == 2:  # a parameter that got no gradient this time
                p.grad = q.grad = None
                continue
            g = rng.standard_normal(p.shape).astype(dtype)
            p.grad, q.grad = torch.tensor(g), wrap(leaf(np.asarray(g)))
        their.step()
        our.step()
        for p, q in zip(theirs, ours, strict=True):
            np.testing.assert_allclose(q.detach().numpy(), p.detach().numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("shape", [(6, 4), (3, 8)])
@pytest.mark.parametrize("options", [
    {}, {"lr": 0.1, "nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
])  # fmt: skip
def test_muon(shape, options):
    rng = np.random.default_rng(0)
    start = rng.standard_normal(shape).astype(np.float32)
    p, q = torch.tensor(start, requires_grad=True), wrap(leaf(start.copy())).requires_grad_()
    their, our = torch.optim.Muon([p], **options), optim.Muon([q], **options)
    for _ in range(4):
        g = rng.standard_normal(shape).astype(np.float32)
        p.grad, q.grad = torch.tensor(g), wrap(leaf(g.copy()))
        their.step()
        our.step()
    change = p.detach().numpy() - start  # a last bit of bfloat16 may differ
    np.testing.assert_allclose(q.detach().numpy() - start, change, atol=0.01 * abs(change).max())


def test_the_average_of_asgd():
    p = wrap(leaf(np.zeros(2, np.float32))).requires_grad_()
    optimizer = optim.ASGD([p], lr=0.1, lambd=0.0, t0=0)
    for _ in range(3):
        p.grad = wrap(leaf(np.ones(2, np.float32)))
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), -0.3, rtol=1e-6)
    np.testing.assert_allclose(optimizer.state[p]["ax"].numpy(), -0.25, rtol=1e-6)


SCHEDULERS = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 10, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.1, "total_iters": 6}),
    ("LambdaLR", {"lr_lambda": lambda t: 1 / (1 + t)}),
    ("MultiplicativeLR", {"lr_lambda": lambda t: 0.9 + t / 100}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3}),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 2,
            "step_size_down": 4,
            "mode": "triangular2",
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 2,
            "mode": "exp_range",
            "gamma": 0.9,
            "cycle_momentum": False,
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 0.5,
            "step_size_up": 2,
            "scale_mode": "iterations",
            "scale_fn": lambda t: 1 / (1 + t),
        },
    ),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 14, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 1.0, "epochs": 2, "steps_per_epoch": 7, "anneal_strategy": "linear"}),
]


CHAINS = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("CosineAnnealingLR", {"T_max": 10, "eta_min": 0.001}),
    ("LinearLR", {"total_iters": 4}),
    ("MultiStepLR", {"milestones": [2, 6], "gamma": 0.3}),
    ("ConstantLR", {"total_iters": 2}),
]


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_schedulers_of_one_optimizer():
    theirs, ours = both()
    their = [getattr(torch.optim.lr_scheduler, n)(theirs, **o) for n, o in CHAINS]
    our = [getattr(lr_scheduler, n)(ours, **o) for n, o in CHAINS]
    for _ in range(14):
        theirs.step()
        for scheduler in [*their, *our]:
            scheduler.step()
        expected = theirs.param_groups[0]["lr"]
        assert ours.param_groups[0]["lr"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("history", [2, 100])
def test_lbfgs(search, history):
    start = np.array([-1.5, 2.0, 0.5])
    options = {"lr": 1.0 if search else 0.1, "max_iter": 8, "history_size": history}
    theirs = [torch.tensor(a, requires_grad=True) for a in (start[:2], start[2:])]
    ours = [wrap(leaf(start[:2].copy())).requires_grad_(), wrap(leaf(start[2:])).requires_grad_()]
    their = torch.optim.LBFGS(theirs, line_search_fn=search, **options)
    our = optim.LBFGS(ours, line_search_fn=search, **options)

    def valley(x, y):
        return (1 - x[0]) ** 2 + 20 * (x[1] - x[0] ** 2) ** 2 + (y - x[0]).square().sum()

    def closure(optimizer, xs):
        def run():
            optimizer.zero_grad()
            loss = valley(*xs)
            loss.backward()
            return loss

        return run

    for _ in range(4):
        expected = their.step(closure(their, theirs))
        found = our.step(closure(our, ours))
        assert found.item() == pytest.approx(expected.item(), rel=1e-6)


def test_lbfgs_refuses():
    p = wrap(leaf(np.zeros(1, np.float32))).requires_grad_()
    with pytest.raises(OptimizerError, match="LBFGS: step needs a closure"):
        optim.LBFGS([p]).step()
    with pytest.raises(OptimizerError, match="expected line_search_fn None or 'strong_wolfe'"):
        optim.LBFGS([p], line_search_fn="armijo")
    with pytest.raises(OptimizerError, match="LBFGS: expected one group of parameters, got 2"):
        optim.LBFGS([{"params": [p]}, {"params": [p.detach().clone().requires_grad_()]}])


def both(momentum=0.9):
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3, momentum=momentum)
    p = wrap(leaf(np.zeros(1, np.float32))).requires_grad_()
    ours = optim.SGD([p], lr=0.3, momentum=momentum)
    ours.step()
    return theirs, ours


@pytest.mark.filterwarnings("ignore:Detected call of")
@pytest.mark.parametrize(("name", "options"), SCHEDULERS)
def test_a_scheduler(name, options):
    theirs, ours = both()
    their = getattr(torch.optim.lr_scheduler, name)(theirs, **options)
    our = getattr(lr_scheduler, name)(ours, **options)
    for _ in range(13):
        for key in ("lr", "momentum"):
            expected = theirs.param_groups[0][key]
            assert ours.param_groups[0][key] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        theirs.step()
        their.step()
        our.step()
    assert our.get_last_lr() == pytest.approx(their.get_last_lr())


@pytest.mark.filterwarnings("ignore:Detected call of")
def test_schedulers_in_sequence():
    theirs, ours = both()
    kinds = [("LinearLR", {"total_iters": 3}), ("ExponentialLR", {"gamma": 0.5})]
    their = [getattr(torch.optim.lr_scheduler, n)(theirs, **o) for n, o in kinds]
    our = [getattr(lr_scheduler, n)(ours, **o) for n, o in kinds]
    a = torch.optim.lr_scheduler.SequentialLR(theirs, their, milestones=[3])
    b = lr_scheduler.SequentialLR(ours, our, milestones=[3])
    for _ in range(8):
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])
        theirs.step()
        a.step()
        b.step()


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_a_plateau(mode, threshold_mode):
    theirs, ours = both()
    options = {
        "mode": mode, "threshold_mode": threshold_mode, "patience": 2, "factor": 0.5,
        "cooldown": 1, "threshold": 0.05,
    }  # fmt: skip
    a = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    b = lr_scheduler.ReduceLROnPlateau(ours, **options)
    rng = np.random.default_rng(1)
    for metric in rng.uniform(-1, 1, 40).round(1):
        a.step(metric)
        b.step(metric)
        assert ours.param_groups[0]["lr"] == pytest.approx(theirs.param_groups[0]["lr"])


# PyTorch lets no gradient through the first buffer of SGD's momentum, or through Adafactor.
FLOWING = [
    (name, options)
    for name, options in OPTIMIZERS
    if name != "Adafactor" and options.keys().isdisjoint(("dampening", "nesterov"))
]


@pytest.mark.parametrize(("name", "options"), FLOWING)
def test_gradients_through_updates(name, options):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=5), rng.normal(size=(1, 5))  # PyTorch manages one step
    found = []
    for t in (torch, wf):
        x = t.tensor(start, requires_grad=True)
        p = x * 1
        given = [t.tensor(g, requires_grad=True) for g in grads]
        opt = getattr(t.optim, name)([p], differentiable=True, **options)
        for g in given:
            p.grad = g * 1
            opt.step()
        (p * p).sum().backward()
        slopes = [t.zeros(5) if g.grad is None else g.grad for g in given]
        found.append([p.detach().numpy(), x.grad.numpy(), *[g.numpy() for g in slopes]])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_steps_that_are_tensors():
    p = wf.ones(2, requires_grad=True)
    opt = optim.Adam([p])
    opt.state[p].update(step=wf.tensor(3.0), exp_avg=wf.ones(2), exp_avg_sq=wf.ones(2))
    p.grad = wf.ones(2)
    opt.step()
    assert opt.state[p]["step"] == 4


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda o, p: o.SGD(p), TypeError),
        (lambda o, p: o.Adadelta([p], rho=1.1), ValueError),
        (lambda o, p: o.Rprop([p], etas=(1.0, 0.5)), ValueError),
    ],
)
def test_options_that_raise(make, kind):
    with pytest.raises(kind):
        make(optim, wf.ones(2, requires_grad=True))
    with pytest.raises(kind):
        make(torch.optim, torch.ones(2, requires_grad=True))


def test_gradients_through_several_updates():
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    p = x * 1
    opt = optim.SGD([p], lr=0.25, momentum=0.5, differentiable=True)
    for _ in range(2):
        p.grad = p * p
        opt.step()
        p.tolist()
    p.sum().backward()
    q = [1.0, 2.0]  # p1 = p0 - p0^2 / 4, p2 = p1 - (p0^2 / 2 + p1^2) / 4
    slopes = [(1 - a / 2) - (a + 2 * (a - a * a / 4) * (1 - a / 2)) / 4 for a in q]
    np.testing.assert_allclose(x.grad.tolist(), slopes, rtol=1e-6)


@pytest.mark.parametrize("whole", [False, True])
def test_sparse_adam_leaves_other_rows(whole):
    rng = np.random.default_rng(0)
    start = rng.standard_normal((6, 3)).astype("f4")
    tables = [lib.nn.Embedding(6, 3, sparse=True) for lib in (torch, wf)]
    for table, lib in zip(tables, (torch, wf), strict=True):
        with lib.no_grad():
            table.weight.copy_(lib.tensor(start))
    options = {"lr": 0.1, "betas": (0.8, 0.99), "maximize": whole}
    both = [
        lib.optim.SparseAdam(t.parameters(), **options)
        for lib, t in zip((torch, wf), tables, strict=True)
    ]
    for step in range(5):
        rows = rng.integers(0, 4 if step < 3 else 6, 5)
        for table, made, lib in zip(tables, both, (torch, wf), strict=True):
            made.zero_grad()
            (table(lib.tensor(rows)) ** 3).sum().backward()
            if lib is wf and whole:  # a gradient that was looked at is stored whole
                table.weight.grad = wf.tensor(table.weight.grad.numpy())
            made.step()
    np.testing.assert_allclose(tables[1].weight.detach().numpy(), tables[0].weight.detach(), 1e-5)
    saved = [made.state_dict()["state"][0]["exp_avg_sq"].numpy() for made in both]
    np.testing.assert_allclose(saved[1], saved[0], rtol=1e-5)
