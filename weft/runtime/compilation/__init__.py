"""From kernels to machine code: the cache on disk, the compilers, the keys of programs."""
