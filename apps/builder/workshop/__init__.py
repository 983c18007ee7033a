"""What one build works with: its sandbox, its tools, and the user at the other end of the queue."""
