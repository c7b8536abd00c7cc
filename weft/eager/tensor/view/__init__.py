"""Views and in-place changes: tensors that show parts of others."""
