"""Views and in-place changes."""
