"""Processes that run one graph together: servers, their devices, and the messages between them."""

from __future__ import annotations

from weft import exports as _exports

_exports.gather(globals())

# Loaded on first use: what carries messages is an extra, `weft[cluster]`.
_exports.lazy(
    globals(),
    {
        "weft.cluster": ("ray",),
        "weft.cluster.resolver.resolve": ("Resolved", "resolve"),
        "weft.cluster.rpc": ("RpcOptions",),
        "weft.cluster.server": ("Server",),
        "weft.cluster.shards.shards": ("Shard", "Shards"),
        "weft.cluster.spec": ("ClusterSpec",),
        "weft.cluster.table.hash_table": ("HashTable", "HashTables"),
        "weft.table.embedding_table": ("TableOptions",),
    },
)
