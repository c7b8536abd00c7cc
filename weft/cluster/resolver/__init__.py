"""What cluster this process is a task of, from what started it."""
