"""The rolling summary: what stands in the prompt for the beginning of a conversation that has outgrown its budget."""
