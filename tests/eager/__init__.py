"""Tests of the eager front end."""
