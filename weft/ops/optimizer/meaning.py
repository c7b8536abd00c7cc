"""What the arguments of optimizers and schedules mean: those that many have are described once."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final, TypeVar

T = TypeVar("T")

MEANINGS: Final = {
    # of PyTorch's optimizers
    "params": "tensors, or dictionaries with `params` and the options of their group.",
    "lr": "the learning rate.",
    "betas": "the factors of the running means of the gradient and of its square.",
    "eps": "added to the denominator, so that it is not 0.",
    "weight_decay": "added to the gradient as weight_decay * p.",
    "decoupled_weight_decay": "shrink the parameters directly, as `AdamW` does.",
    "maximize": "ascend instead of descending.",
    "foreach": "accepted as in PyTorch; all updates are always one program.",
    "fused": "accepted as in PyTorch; all updates are always one program.",
    "capturable": "accepted as in PyTorch; has no effect.",
    "differentiable": "gradients flow through the update, and parameters need not be leaves.",
    # of schedulers
    "optimizer": "the one whose rates are set.",
    "last_epoch": "the step to resume from; -1 starts.",
    "gamma": "the factor.",
    "eta_min": "the lowest rate.",
    "total_iters": "the steps that it takes.",
    # of TensorFlow's optimizers
    "learning_rate": "a number, a tensor, or a function that returns one.",
    "initial_learning_rate": "the rate of the first step.",
    "global_step": "the number of steps so far.",
    "decay_steps": "the steps after which the decay is `decay_rate`.",
    "decay_rate": "how much the rate falls.",
    "staircase": "whether it falls in jumps, after each `decay_steps`.",
    "end_learning_rate": "the rate after `decay_steps` steps.",
    "power": "the exponent; 1 is a straight line.",
    "cycle": "start again after `decay_steps` steps, from a lower rate each time.",
    "beta1": "the factor of the running mean of the gradient.",
    "beta2": "the factor of the running mean of its square.",
    "beta_1": "the factor of the running mean of the gradient.",
    "beta_2": "the factor of the running mean of its square.",
    "epsilon": "added to the denominator, so that it is not 0.",
    "momentum": "the factor of the running sum.",
    "use_locking": "accepted as in TensorFlow; updates are never interleaved.",
    "name": "of the operations' scope.",
    "options": "`lr`, `decay`, `clipnorm` and `clipvalue`, as in `Optimizer`.",
}  # fmt: skip


def described(thing: T) -> T:
    """Complete the `Args:` of a function or class of the package: all arguments, in their order.

    Those that its docstring leaves out are described as in the table.

    Raises:
        KeyError: an argument that neither describes.
    """
    doc = thing.__doc__
    if doc is None or not thing.__module__.startswith("weft."):  # None: also with python -OO
        return thing
    takes: Any = thing.__init__ if isinstance(thing, type) else thing
    arguments = [name for name in inspect.signature(takes).parameters if name != "self"]
    before, there, section = doc.rstrip().partition("\n\n    Args:\n")
    if there:
        section, gap, after = section.partition("\n\n")
    else:
        ends = re.search(r"\n\n    (Raises:|Source:|Example:|>>>|Attributes:)", before)
        place = ends.start() if ends else len(before)
        before, gap, after = before[:place], "\n\n" * bool(ends), before[place + 2 :]
    own: dict[str, str] = {}
    for entry in re.split(r"\n(?=        \S)", section):
        own.update(dict.fromkeys(entry.split(":")[0].strip().split(", "), entry))
    entries = [own.get(name) or f"        {name}: {MEANINGS[name]}" for name in arguments]
    listed = "\n".join(dict.fromkeys(entries))
    thing.__doc__ = f"{before}\n\n    Args:\n{listed}{gap}{after}\n    "
    return thing
