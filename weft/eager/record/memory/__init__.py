"""The memory of values: new, copied, lent to others, taken over."""
