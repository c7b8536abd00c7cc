"""Loop generator: index and scalar expressions, a small loop tree, and its way to LLVM IR."""
