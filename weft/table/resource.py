"""A table of rows as a resource that the operations of a graph call."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Array, Cancellation, Resource, register
from weft.table.embedding_table import Content, TableOptions
from weft.table.home import HomeHere
from weft.table.host import TableHost
from weft.table.sharded import ShardedTables

KIND: Final = "EmbeddingTable"
_TABLE: Final = "rows"


@register(KIND)
class EmbeddingResource(Resource):
    """Rows by id. The option `table` is the JSON text of `TableOptions.record`."""

    family = KIND
    what = "table"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec)
        options = TableOptions.of(json.loads(spec.option("table")))
        self._rows = ShardedTables({_TABLE: options}, [HomeHere(TableHost())])
        self._lock = threading.Lock()

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Look up, update, tell or replace rows; never waits."""
        del cancel
        with self._lock:
            match method:
                case "lookup":
                    asked = {_TABLE: inputs[0]}
                    return [self._rows.lookup(asked, insert=options["insert"])[_TABLE]]
                case "update":
                    return self._update(*inputs)
                case "size":
                    return [np.array(self._rows.sizes()[_TABLE][0], np.int64)]
                case "export":
                    content, updates = self._rows.export(_TABLE)
                    return [*content, np.array(updates, np.int64)]
                case "import":
                    self._rows.load(_TABLE, Content(*inputs[:-1]), int(inputs[-1]))
                    return []
                case _:
                    raise ArgumentError(f"{KIND}: there is no method {method!r}")

    def _update(self, ids: Array, gradients: Array, lr: Array) -> list[Array]:
        rate = None if np.isnan(lr) else float(lr)
        count = self._rows.update({_TABLE: ids}, {_TABLE: gradients}, rate)
        return [np.array(count, np.int64)]

    def close(self) -> None:
        """Nobody waits for a table."""
