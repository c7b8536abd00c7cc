"""Tests of gradients: backward passes, hooks, functions of the user, checks."""
