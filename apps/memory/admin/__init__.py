"""The admin's view of all users' memories."""

from . import files as files
from . import notes as notes
from . import receipts as receipts
from . import windows as windows
