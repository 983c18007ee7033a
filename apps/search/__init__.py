"""Search over everything a user has: passages, their vectors and full text, ranking, context blocks."""

import os

# Before numpy is imported: a search multiplies one matrix by one vector, which one thread does as fast as memory
# allows, while waking helper threads costs milliseconds on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
