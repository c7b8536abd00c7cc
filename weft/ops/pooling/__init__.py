"""Windows of images reduced to one element."""
