"""What a task does for clients: it cuts their graphs, and lets workers run the parts."""
