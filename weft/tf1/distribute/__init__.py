"""`tf.distribute`: its cluster resolvers."""

from weft.tf1.distribute import cluster_resolver as cluster_resolver

__all__ = ["cluster_resolver"]
