"""The operation catalogue: importing this package declares every operation."""
