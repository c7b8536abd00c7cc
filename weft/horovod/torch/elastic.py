"""`hvd.elastic` for eager tensors: commits a model, its optimizer and other values.

>>> import weft as wf
>>> import weft.horovod.torch as hvd
>>> model = wf.nn.Linear(2, 1)
>>> optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
>>> @hvd.elastic.run
... def train(state):
...     while state.batch < 2:
...         state.batch += 1
...         state.commit()
...     return state.batch
>>> train(hvd.elastic.TorchState(model, optimizer, batch=0))
2
>>> hvd.shutdown()
"""

from __future__ import annotations

import os
from typing import Any

from weft.horovod.elastic import ObjectState, State, StatefulState, run
from weft.horovod.torch.sampler import ElasticSampler


class TorchState(StatefulState):
    """A model, an optimizer, and other values by name.

    Args:
        model, optimizer: each is optional.
        folder: see `State`.
        kwargs: objects with `state_dict` and `load_state_dict`, such as samplers, or numbers,
            strings, tensors and nested structures of them.
    """

    def __init__(
        self, model: Any = None, optimizer: Any = None,
        folder: str | os.PathLike[str] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        objects = {"model": model, "optimizer": optimizer}
        objects |= {k: v for k, v in kwargs.items() if hasattr(v, "load_state_dict")}
        values = {k: v for k, v in kwargs.items() if k not in objects}
        super().__init__({k: v for k, v in objects.items() if v is not None}, folder, **values)


__all__ = ["ElasticSampler", "ObjectState", "State", "TorchState", "run"]
