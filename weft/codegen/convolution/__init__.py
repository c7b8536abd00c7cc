"""Convolutions: their geometry, padded copies and packed weights, and the loops around the tiles."""
