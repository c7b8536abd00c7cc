"""Horovod's names on `weft.distributed`: `weft.horovod.torch` and `weft.horovod.tensorflow`."""
