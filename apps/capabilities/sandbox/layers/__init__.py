"""Requirements of tools, installed once and bound read-only into every sandbox that asks for the same."""
