"""Made by `python -m tools.package_stubs`."""

from weft.distributed.fsdp.fully_shard import fully_shard as fully_shard
from weft.distributed.fsdp.module import *
from weft.distributed.fsdp.option import *
from weft.distributed.fsdp.policy import *
from weft.distributed.fsdp import wrap as wrap
from weft.distributed.fsdp.wrapper import FullyShardedDataParallel as FullyShardedDataParallel
