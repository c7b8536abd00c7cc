"""Losses: entropies, of classes, of regression."""
