"""Messages between processes: over gRPC, and through shared memory on one host."""

from weft.cluster.rpc.channel import Channel as Channel
from weft.cluster.rpc.connect import connect as connect
from weft.cluster.rpc.connect import connect_patiently as connect_patiently
from weft.cluster.rpc.failure import travels as travels
from weft.cluster.rpc.listener import Listener as Listener
from weft.cluster.rpc.message import Message as Message
from weft.cluster.rpc.options import RpcOptions as RpcOptions
from weft.cluster.rpc.session import Peer as Peer
