"""`tf.distribute.cluster_resolver`, which was `tf.contrib.cluster_resolver`."""

from weft.cluster.resolver.base import ClusterResolver as ClusterResolver
from weft.cluster.resolver.base import SimpleClusterResolver as SimpleClusterResolver
from weft.cluster.resolver.base import UnionClusterResolver as UnionClusterResolver
from weft.cluster.resolver.mpi import MPIClusterResolver as MPIClusterResolver
from weft.cluster.resolver.slurm import SlurmClusterResolver as SlurmClusterResolver
from weft.cluster.resolver.tf_config import TFConfigClusterResolver as TFConfigClusterResolver

UnionResolver = UnionClusterResolver

__all__ = [
    "ClusterResolver",
    "MPIClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionClusterResolver",
    "UnionResolver",
]
