"""Collectives on tensors: process groups, point-to-point messages, objects, gradients."""
