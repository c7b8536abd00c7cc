"""Convolutions by Winograd's minimal filtering: transform, multiply, transform back."""
