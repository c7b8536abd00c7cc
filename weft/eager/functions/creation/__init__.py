"""Creation of tensors from data, shapes and numbers."""
