"""Cutting a step that is placed on devices into stages."""
