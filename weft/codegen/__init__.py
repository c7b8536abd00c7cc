"""From a fused group to machine code: loop IR, vector math, matmul kernels, LLVM IR."""
