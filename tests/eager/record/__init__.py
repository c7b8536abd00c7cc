"""Tests of what is recorded, and of when it is computed."""
