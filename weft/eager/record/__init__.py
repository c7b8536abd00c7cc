"""What was called: lazy values, plans, cached programs, dynamic shapes, execution, recovery."""
