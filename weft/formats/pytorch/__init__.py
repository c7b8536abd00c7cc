"""Reads files of `torch.save` without executing their content."""
