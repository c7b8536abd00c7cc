"""SPMD functions over ranks: shard_map, pmap and collectives, with gradients.

Every rank runs the same program (`weft launch`). An axis name stands for the ranks along it.
"""
