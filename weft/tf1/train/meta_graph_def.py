"""`tf.MetaGraphDef`: a graph with its variables, collections and saver, as the bytes of a file.

MetaGraphDef    graph_def = 2; MORE: variables, collections, saver and signatures as JSON
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from weft.errors import DataError
from weft.formats import wire
from weft.formats.atomic_file import write_file
from weft.tf1.framework.graph import Graph
from weft.tf1.framework.graph_def import GraphDef
from weft.tf1.framework.option import ANY, only
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_def import described

__all__ = ["MetaGraphDef"]

GRAPH_DEF: Final = 2
MORE: Final = 10_003
EXPORTED: Final = {
    "clear_devices": ANY, "clear_extraneous_savers": ANY, "strip_default_attrs": ANY,
    "save_debug_info": ANY, "as_text": False, "export_scope": None, "meta_info_def": None,
    "graph_def": None,
}  # fmt: skip
"""Arguments of `export_meta_graph` that are not supported, or change nothing."""


class MetaGraphDef:
    """A graph, its variables and collections, and how it is saved and served.

    Attributes:
        graph_def: the operations.
        variables: a record of each.
        collections: by name, lists of records of what they hold.
        saver: a record of it, or `None`.
        signature_def: by name, the `SignatureDef` of a saved model.
        tags: what a saved model calls it.
        main_op: the name of the operation that runs when a saved model is loaded; or empty.
        clear_devices: whether devices are left away, here and when it is imported.
    """

    def __init__(self) -> None:
        self.graph_def = GraphDef()
        self.variables: list[dict[str, Any]] = []
        self.collections: dict[str, list[Any]] = {}
        self.saver: dict[str, Any] | None = None
        self.signature_def: dict[str, Any] = {}
        self.tags: list[str] = []
        self.main_op = ""
        self.clear_devices = False

    @classmethod
    def of(
        cls, graph: Graph, saver: Any = None, keys: Sequence[str] | None = None,
        clear_devices: bool = False,
    ) -> Self:  # fmt: skip
        """The record of a graph; of collections, only what a file can hold.

        Args:
            graph: the graph.
            saver: what saves its variables.
            keys: names of collections, by default all.
            clear_devices: leave the devices away.
        """
        made = cls()
        made.graph_def = graph.as_graph_def()
        if clear_devices:
            made.clear_devices = True
            made.graph_def.node = [replace(node, device="") for node in made.graph_def.node]
        found = dict.fromkeys([v for v in graph.keys.values() if isinstance(v, Variable)])
        made.variables = [described(variable) for variable in found]
        made.saver = None if saver is None else saver.described()
        for key in graph.get_all_collection_keys() if keys is None else keys:
            items = [told for item in graph.get_collection(key) if (told := _told(item, graph))]
            made.collections[key] = items
        return made

    def SerializeToString(self) -> bytes:
        """The bytes of a file."""
        told = {k: v for k, v in vars(self).items() if k not in ("graph_def", "signature_def")}
        told["signature_def"] = {name: one.described() for name, one in self.signature_def.items()}
        graph = wire.delimited(GRAPH_DEF, self.graph_def.SerializeToString())
        return graph + wire.delimited(MORE, json.dumps(told))

    @classmethod
    def FromString(cls, serialized: bytes) -> Self:
        """The record in a file.

        Raises:
            DataError: the bytes are damaged, or another library wrote them.
        """
        made = cls()
        found = {f.number: f.value for f in wire.fields(serialized, what="MetaGraphDef")}
        made.graph_def.ParseFromString(found.get(GRAPH_DEF, b""))
        if MORE not in found:
            raise DataError.here("MetaGraphDef: expected variables and collections, got a graph")
        vars(made).update(json.loads(bytes(found[MORE])))
        return made


def exported(
    graph: Graph, saver: Any, keys: Sequence[str] | None, filename: Any, given: Mapping[str, Any]
) -> MetaGraphDef:
    """The record of a graph, which is written to a file if there is a name of one.

    Args:
        graph, saver, keys: as of `MetaGraphDef.of`.
        filename: of the file; `None` writes none.
        given: other arguments of `export_meta_graph`.
    """
    only("export_meta_graph", given, **EXPORTED)
    made = MetaGraphDef.of(graph, saver, keys, bool(given.get("clear_devices")))
    if filename is not None:
        write_file(Path(os.fspath(filename)), [made.SerializeToString()])
    return made


def _told(item: Any, graph: Graph) -> list[Any] | None:
    """An item of a collection as a record; `None` if a file cannot hold it."""
    if hasattr(item, "described"):  # a saver
        return ["saver", item.described()]
    kinds = (("variable", Variable), ("operation", Operation), ("tensor", Tensor))
    for kind, cls in kinds:
        if isinstance(item, cls):
            name = item.op.name if isinstance(item, Variable) else item.name
            return [kind, name] if item.graph is graph else None
    return ["plain", item] if isinstance(item, str | int | float) else None
