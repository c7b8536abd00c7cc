"""Files of arrays: written whole or not at all, checked when they are read."""
