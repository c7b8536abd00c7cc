"""Tests of tensors as data and views."""
