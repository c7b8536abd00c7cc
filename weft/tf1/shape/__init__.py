"""Reshaping and reordering."""
