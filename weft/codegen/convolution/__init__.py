"""Convolutions: geometry, padded copies, packed weights, and the loops around the tiles."""
