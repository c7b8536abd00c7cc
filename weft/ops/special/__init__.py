"""Special functions: gamma, Bessel and error functions."""
