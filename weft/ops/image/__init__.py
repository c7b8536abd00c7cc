"""Image sampling and resizing."""
