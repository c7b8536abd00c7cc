"""Hooks of all optimisers."""

import weft as wf
from weft.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def test_hooks_of_all_optimisers_are_around_its_own():
    calls = []
    optimiser = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=0.1)
    optimiser.register_step_pre_hook(lambda *given: calls.append("own before"))
    optimiser.register_step_post_hook(lambda *given: calls.append("own after"))
    with (
        register_optimizer_step_pre_hook(lambda o, a, k: calls.append(("before", o))),
        register_optimizer_step_post_hook(lambda o, a, k: calls.append(("after", o))),
    ):
        optimiser.step()
    assert calls == [("before", optimiser), "own before", "own after", ("after", optimiser)]
    calls.clear()
    optimiser.step()
    assert calls == ["own before", "own after"]
