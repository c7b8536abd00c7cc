"""Shape: creation, reshape, permutation, joining, padding."""
