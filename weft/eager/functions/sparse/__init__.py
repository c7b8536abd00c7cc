"""Sparse tensors, by coordinates or by compressed rows."""
