"""A job one rank of which is killed once; it goes on from its last commit."""

import os
import signal
import sys
from pathlib import Path

import weft as wf
import weft.horovod.torch as hvd


@hvd.elastic.run
def train(state):
    while state.step < 4:
        assert state.model.bias.item() == state.step  # as many updates as were committed
        state.optimizer.zero_grad()
        state.model(wf.ones(1, 1)).sum().backward()
        state.optimizer.step()
        state.step += 1
        state.commit()
        if state.step == 2 and hvd.rank() == 1 and not os.path.exists(sys.argv[1]):
            Path(sys.argv[1]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return state.step


hvd.init()
model = wf.nn.Linear(1, 1)
wf.nn.init.zeros_(model.bias)
optimizer = hvd.DistributedOptimizer(wf.optim.SGD(model.parameters(), lr=1.0, maximize=True))
print("ended at", train(hvd.elastic.TorchState(model, optimizer, step=0)))
