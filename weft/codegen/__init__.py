"""From a fused group to machine code: loop IR, vector maths, contraction kernels, LLVM IR."""
