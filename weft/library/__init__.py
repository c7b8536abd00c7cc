"""Kernels with sizes as arguments, and the lists of them that compute what a program does once."""
