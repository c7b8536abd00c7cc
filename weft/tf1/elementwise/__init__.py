"""Functions of single elements, with broadcasting."""
