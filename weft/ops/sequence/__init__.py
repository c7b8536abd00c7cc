"""Sequences: recurrent layers, CTC."""
