"""How what is pending is recognized: its structure, and recordings that repeat."""
