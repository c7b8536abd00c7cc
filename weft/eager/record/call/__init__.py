"""What is called: patterns of calls, their types, plans."""
