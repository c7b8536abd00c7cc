"""Global optimizer hooks."""

import weft as wf
from weft.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


def test_global_hooks_run_around_an_optimizers_own():
    calls = []
    optimizer = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=0.1)
    optimizer.register_step_pre_hook(lambda *given: calls.append("own before"))
    optimizer.register_step_post_hook(lambda *given: calls.append("own after"))
    with (
        register_optimizer_step_pre_hook(lambda o, a, k: calls.append(("before", o))),
        register_optimizer_step_post_hook(lambda o, a, k: calls.append(("after", o))),
    ):
        optimizer.step()
    assert calls == [("before", optimizer), "own before", "own after", ("after", optimizer)]
    calls.clear()
    optimizer.step()
    assert calls == ["own before", "own after"]
