"""History of notes and files: the states that revisions keep, the texts of a time, what differs."""
