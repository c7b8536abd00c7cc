"""Convolutions by Winograd's minimal filtering: transform, multiply, inverse transform."""
