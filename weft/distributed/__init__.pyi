"""Made by `python -m tools.package_stubs`."""

from weft.collectives.collective import *
from weft.collectives.objects import *
from weft.collectives.point_to_point import *
from weft.collectives.process_group import *
from weft.collectives.profile import *
from weft.collectives.reduce_op import ReduceOp as ReduceOp
from weft.collectives.subgroup import *
from weft.collectives.work import Work as Work
from weft.distributed.device_mesh import *
from weft.distributed import algorithms as algorithms
from weft.distributed import checkpoint as checkpoint
from weft.distributed import fsdp as fsdp
from weft.distributed import nn as nn
from weft.distributed import pipelining as pipelining
from weft.distributed import tensor as tensor
