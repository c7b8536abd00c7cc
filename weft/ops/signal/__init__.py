"""Signals: Fourier transforms, windows, overlapping pieces."""
