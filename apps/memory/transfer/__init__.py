"""Taking a memory out and bringing one in: Izzy's own files, and those of other programs."""
