"""Made by `python -m tools.package_stubs`."""

from weft.cluster import ray as ray
from weft.cluster.resolver.resolve import Resolved as Resolved
from weft.cluster.resolver.resolve import resolve as resolve
from weft.cluster.rpc import RpcOptions as RpcOptions
from weft.cluster.server import Server as Server
from weft.cluster.shards.shards import Shard as Shard
from weft.cluster.shards.shards import Shards as Shards
from weft.cluster.spec import ClusterSpec as ClusterSpec
from weft.cluster.table.hash_table import HashTable as HashTable
from weft.cluster.table.hash_table import HashTables as HashTables
from weft.table.embedding_table import TableOptions as TableOptions
