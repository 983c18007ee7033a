"""Taking a text out of everything that was kept of it: what is looked for, where, and what stays on the disk."""
