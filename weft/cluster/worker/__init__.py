"""What a task does for masters: its parts of steps, its variables and queues."""
