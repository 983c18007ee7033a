"""Review of notes by the user before they are kept: which have to wait, the queue, and its decisions.

No tool of the assistant reaches what is in here but `policy`, which says whether a note has to wait.
"""
