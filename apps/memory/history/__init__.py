"""What a note or file was before each change: the states that revisions keep, the texts of a time, what differs."""
