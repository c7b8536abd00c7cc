"""Tests of the define-by-run front end."""
