"""How good the memory is: what it holds twice, what contradicts, what is never used, what filling it costs."""
