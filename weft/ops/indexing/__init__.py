"""Reading and writing elements by their positions."""
