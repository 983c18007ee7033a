"""The tools that the agent itself brings, a file each."""
