"""Helpers of operation declarations: rules, attributes, short forms."""
