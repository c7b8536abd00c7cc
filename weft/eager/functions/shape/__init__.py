"""Shape: the same elements in another shape or order."""
