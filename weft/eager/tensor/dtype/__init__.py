"""Element types: what they hold, their names, and which one mixed types compute in."""
