# ruff: noqa: D102
"""The same random numbers and initial weights under two frameworks, and the losses of a program.

`MADE_VALUES` names a folder: the first run writes the parameters of each optimizer when it is made,
later ones read them. Losses are the scalars whose `backward` is called. Random numbers are NumPy's,
and begin anew when an optimizer is made.
"""

import atexit
import functools
import json
import os
import random
from pathlib import Path

import numpy as np
from imported import when_imported

FOLDER = Path(os.environ["MADE_VALUES"])
FIRST = not (FOLDER / "losses-torch.json").exists()
LOSSES = FOLDER / f"losses-{'torch' if FIRST else 'weft'}.json"
MOST = int(os.environ.get("MADE_LOSSES", "200"))
"""Losses that are kept; if the environment gives their number, the program ends after them."""


def size_of(args, options):
    """The size that a function of sizes is given."""
    sizes = options.get("size", args)
    if len(sizes) == 1 and not isinstance(sizes[0], int):
        sizes = sizes[0]
    return tuple([int(n) for n in sizes])


class Same:
    """Random functions of NumPy's numbers, and what is watched."""

    def __init__(self, torch):
        self.torch, self.rng = torch, np.random.default_rng(0)
        self.made, self.losses, self.waiting = 0, [], []
        random.seed(0)
        np.random.seed(0)

    def tensor(self, array, like=None, dtype=None):
        found = self.torch.from_numpy(np.ascontiguousarray(array))
        default = self.torch.get_default_dtype() if like is None else like.dtype
        return found.to(dtype or default)

    def uniform(self, shape):
        return self.rng.random(shape)

    def gauss(self, shape):
        return self.rng.standard_normal(shape)

    def drawn(self, draw):
        def function(*args, dtype=None, requires_grad=False, device=None, **options):
            options.pop("generator", None)
            found = self.tensor(draw(size_of(args, options)), dtype=dtype)
            return found.requires_grad_(requires_grad)

        return function

    def drawn_like(self, draw):
        def function(x, dtype=None, requires_grad=False, **options):
            return self.tensor(draw(tuple(x.shape)), x, dtype).requires_grad_(requires_grad)

        return function

    def normal(self, mean=0.0, std=1.0, size=None, **options):
        given = [x for x in (mean, std) if isinstance(x, self.torch.Tensor)]
        shape = self.torch.broadcast_tensors(*given)[0].shape if given else size
        found = self.tensor(self.gauss(tuple(shape))) * std + mean
        return found.requires_grad_(options.get("requires_grad", False))

    def randint(self, low, high=None, size=None, dtype=None, **options):
        if isinstance(high, tuple | list):
            low, high, size = 0, low, high
        low, high = (0, low) if high is None else (low, high)
        found = np.asarray(self.rng.integers(low, high, tuple(size)))
        return self.torch.from_numpy(found).to(dtype or self.torch.int64)

    def randperm(self, n, **options):
        return self.torch.from_numpy(self.rng.permutation(n))

    def random_split(self, dataset, lengths, generator=None):
        if all(n <= 1 for n in lengths) and sum(lengths) == 1:
            lengths = [int(n * len(dataset)) for n in lengths]
            for i in range(len(dataset) - sum(lengths)):
                lengths[i % len(lengths)] += 1
        order, ends = self.rng.permutation(len(dataset)).tolist(), np.cumsum(lengths)
        subset = self.torch.utils.data.Subset
        return [subset(dataset, order[e - n : e]) for n, e in zip(lengths, ends, strict=True)]

    def bernoulli(self, x, *args, **options):
        p = x.detach().numpy()
        return self.tensor(self.uniform(p.shape) < p, x)

    def multinomial(self, x, num_samples, replacement=False, **options):
        p = np.atleast_2d(x.detach().double().numpy())
        p = p / p.sum(-1, keepdims=True)
        rows = [self.rng.choice(len(r), num_samples, replacement, r) for r in p]
        found = self.torch.from_numpy(np.asarray(rows, np.int64))
        return found if x.ndim > 1 else found[0]

    def dropout(self, x, p=0.5, training=True, inplace=False):
        if not training or not p:
            return x
        return x * self.tensor((self.uniform(tuple(x.shape)) >= p) / (1 - p), x)

    def of_normal(self, law, sample_shape=()):
        shape = (*sample_shape, *law.loc.shape)
        return law.loc + law.scale * self.tensor(self.gauss(shape), law.loc)

    def of_categorical(self, law):
        rows = law.probs.reshape(-1, law.probs.shape[-1])
        return self.multinomial(rows, 1).reshape(law.probs.shape[:-1])

    def replace_random(self):
        """Draw from NumPy's numbers, except in parameters' initial values."""
        torch, data, laws = self.torch, self.torch.utils.data, self.torch.distributions
        torch.rand, torch.randn = self.drawn(self.uniform), self.drawn(self.gauss)
        torch.rand_like, torch.randn_like = (
            self.drawn_like(self.uniform),
            self.drawn_like(self.gauss),
        )
        for name in ("bernoulli", "multinomial", "normal", "randint", "randperm"):
            setattr(torch, name, getattr(self, name))
        torch.nn.functional.dropout = self.dropout
        torch.nn.Dropout.forward = lambda layer, x: self.dropout(x, layer.p, layer.training)
        data.random_split = self.random_split
        data.RandomSampler.__iter__ = lambda own: iter(self.randperm(len(own.data_source)).tolist())
        data.SubsetRandomSampler.__iter__ = lambda own: iter(
            [own.indices[i] for i in self.rng.permutation(len(own.indices))]
        )
        laws.Normal.rsample = lambda law, shape=(): self.of_normal(law, shape)
        laws.Normal.sample = lambda law, shape=(): self.of_normal(law, shape).detach()
        laws.Categorical.sample = lambda law, shape=(): self.of_categorical(law)

    def begin(self, optimizer):
        """Write or read the parameters of a new optimizer."""
        ours = [p for group in optimizer.param_groups for p in group["params"]]
        self.made += 1
        self.rng = np.random.default_rng(self.made)
        file = FOLDER / f"{self.made - 1}.npz"
        lazy = self.torch.nn.parameter.is_lazy
        if any(lazy(p) for p in ours):  # the shapes are known when the model has been called
            self.waiting.append((file, ours))
        else:
            self.exchange(file, ours)

    def exchange(self, file, ours):
        """Write parameters to a file, or read them."""
        if FIRST:
            np.savez(file, *[p.detach().numpy() for p in ours])
        elif file.exists():
            theirs = np.load(file)
            with self.torch.no_grad():
                for i, p in enumerate(ours):
                    p.copy_(self.torch.from_numpy(theirs[f"arr_{i}"]))

    def watch(self):
        """See optimizers that are made, and losses."""
        torch = self.torch
        made, backward = torch.optim.Optimizer.__init__, torch.Tensor.backward
        called = torch.nn.Module.__call__

        @functools.wraps(called)
        def call(module, *args, **options):
            waiting = self.waiting if any(True for _ in module.parameters()) else []
            if waiting:
                self.waiting = []
                with torch.no_grad():
                    called(module, *args, **options)
            for file, ours in waiting:
                self.exchange(file, ours)
            return called(module, *args, **options)

        @functools.wraps(made)
        def begin(optimizer, *args, **options):
            made(optimizer, *args, **options)
            self.begin(optimizer)

        @functools.wraps(backward)
        def watched(x, *args, **options):
            if len(self.losses) < MOST and x.numel() == 1:
                self.losses.append(float(x.detach()))
                if len(self.losses) == MOST and "MADE_LOSSES" in os.environ:
                    LOSSES.write_text(json.dumps(self.losses))
                    os._exit(0)
            return backward(x, *args, **options)

        torch.optim.Optimizer.__init__, torch.Tensor.backward = begin, watched
        torch.nn.Module.__call__ = call
        atexit.register(lambda: LOSSES.write_text(json.dumps(self.losses)))


def begin(torch):
    """Begin when the program has imported PyTorch."""
    same = Same(torch)
    same.replace_random()
    same.watch()


when_imported(begin)
