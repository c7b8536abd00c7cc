"""Elements by their positions."""
