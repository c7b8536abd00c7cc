"""Clusters and MPI jobs on Ray: the extra `weft[ray]`."""

from __future__ import annotations

from weft import exports
from weft.cluster.ray.mpi import *
from weft.cluster.ray.start import *
from weft.cluster.ray.task import Task as Task

exports.gather(globals())
