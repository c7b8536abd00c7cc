"""Tests of lazy recording, and of when values are computed."""
