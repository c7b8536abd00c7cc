"""Signals: Fourier transforms, windows, short-time transforms."""
