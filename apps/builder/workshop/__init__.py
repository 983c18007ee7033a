"""The workshop of one build: its sandbox, its tools, and the user at the other end of the queue."""
