"""Optimizers whose options change in the middle of a run, and states handed over, as in PyTorch."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

OPTIMIZERS = {
    "SGD": {"lr": 0.05},
    "SGD with momentum": {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
    "SGD, Nesterov": {"lr": 0.05, "momentum": 0.9, "nesterov": True},
    "Adam": {"lr": 0.05, "amsgrad": True},
    "AdamW": {"lr": 0.05},
    "Adagrad": {"lr": 0.05, "lr_decay": 0.1},
    "RMSprop": {"lr": 0.05, "momentum": 0.5, "centered": True},
    "Adadelta": {"lr": 0.5},
    "Adamax": {"lr": 0.05},
    "NAdam": {"lr": 0.05, "momentum_decay": 0.1},
    "NAdam, decoupled": {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"lr": 0.05},
    "Rprop": {"lr": 0.05},
    "ASGD": {"lr": 0.05, "t0": 3, "lambd": 0.1},
}
SCHEDULERS = {
    "ExponentialLR": {"gamma": 0.8},
    "OneCycleLR": {"max_lr": 0.1, "total_steps": 20},  # cycles momentum or beta1, too
}


class Run:
    """One library's parameters and optimizer; the gradients depend on the parameters."""

    def __init__(self, library, name, params=None, dtype="float64"):
        self.library = library
        self.kind, self.options = name.split()[0].strip(","), OPTIMIZERS[name]
        starts = [[3.0, -2.0, 0.5], [[1.0], [-1.0]]] if params is None else params
        self.params = [
            library.nn.Parameter(library.tensor(p, dtype=getattr(library, dtype))) for p in starts
        ]
        self.late = library.nn.Parameter(library.tensor([0.7], dtype=getattr(library, dtype)))
        self.optimizer = getattr(library.optim, self.kind)(self.params[:1], **self.options)
        self.optimizer.add_param_group({"params": self.params[1:], "lr": 0.02})
        self.scheduler = None

    def schedule(self, name):
        options = dict(SCHEDULERS[name])
        if name == "OneCycleLR":
            defaults = self.optimizer.defaults
            options["cycle_momentum"] = bool(defaults.get("momentum", "betas" in defaults))
        self.scheduler = getattr(self.library.optim.lr_scheduler, name)(self.optimizer, **options)

    def steps(self, count, skip=False):
        for i in range(count):
            self.optimizer.zero_grad()
            total = sum((p**2).sum() + (p * 3).sin().sum() for p in [*self.params, self.late])
            total.backward()
            if skip and i % 2:  # so that step counts differ
                self.params[1].grad = None
            self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()

    def change(self):
        """Options changed by hand, and a group that comes late."""
        for group in self.optimizer.param_groups:
            group["lr"] *= 0.5
            for name, new in (("betas", (0.7, 0.97)), ("momentum", 0.6), ("weight_decay", 0.2)):
                if name in group and not group.get("nesterov"):
                    group[name] = new
        self.optimizer.add_param_group({"params": [self.late], "lr": 0.03})

    def values(self):
        return [p.detach().numpy().copy() for p in [*self.params, self.late]]


def agree(ours, theirs):
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def both(name):
    return Run(wf, name), Run(torch, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_options_change_in_the_middle_of_a_run(name):
    for scheduler in SCHEDULERS:
        runs = both(name)
        for run in runs:
            run.schedule(scheduler)
            run.steps(3, skip=True)
        agree(*runs)
    for run in runs:
        run.scheduler = None
        run.change()
        run.steps(3, skip=True)
    agree(*runs)


def carried(state, library):
    """A state dict whose tensors are another library's."""
    other = torch if library is wf else wf
    if isinstance(state, dict):
        return {key: carried(value, library) for key, value in state.items()}
    if isinstance(state, list):
        return [carried(value, library) for value in state]
    if isinstance(state, other.Tensor):
        return library.tensor(np.array(state.detach().numpy()))
    return copy.copy(state)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("to", ["weft", "torch"])
def test_a_state_is_continued_in_the_other_library(name, to):
    ours, theirs = both(name)
    for run in (ours, theirs):
        run.steps(3, skip=True)
        for group in run.optimizer.param_groups:
            group["lr"] *= 0.5
        run.steps(2)
    source, library = (theirs, wf) if to == "weft" else (ours, torch)
    state = carried(source.optimizer.state_dict(), library)
    made = Run(library, name, [p.detach().numpy().tolist() for p in source.params])
    made.optimizer.load_state_dict(state)
    for run in (source, made):
        run.steps(3, skip=True)
    for a, b in zip(made.values()[:2], source.values()[:2], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("to", ["weft", "torch"])
def test_lbfgs_is_continued_in_the_other_library(to):
    def made(library, start):
        p = library.nn.Parameter(library.tensor(start, dtype=library.float64))
        return p, library.optim.LBFGS([p], lr=0.5, max_iter=3)

    def steps(p, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = (p[0] - 1) ** 2 * 3 + (p[1] + 2 * p[0] ** 2) ** 2
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)

    source, library = (torch, wf) if to == "weft" else (wf, torch)
    first = made(source, [3.0, -2.0])
    steps(*first)
    second = made(library, first[0].tolist())
    second[1].load_state_dict(carried(first[1].state_dict(), library))
    steps(*first)
    steps(*second)
    np.testing.assert_allclose(second[0].tolist(), first[0].tolist(), rtol=1e-10)
