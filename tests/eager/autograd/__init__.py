"""Tests of gradients: backward passes, hooks, custom functions, checks."""
