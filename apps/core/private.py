"""Files of the data directory, and what is taken out of it: for the eyes of the server's own user."""

import os
from functools import partial

private = partial(os.open, mode=0o600)
"""The `opener` of an `open` that makes such a file, whatever the umask says."""
