"""What waits for the user's word before it becomes memory: who has to wait, the queue, and its decisions.

No tool of the assistant reaches what is in here but `policy`, which says whether a note has to wait.
"""
