"""Losses: classification, regression, entropies, CTC."""
