"""Loop generator: index and scalar expressions, a small loop tree, and its translation to LLVM
IR.
"""
