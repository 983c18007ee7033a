"""Dates as the rest of the pages writes them, for what Django formats by itself: the admin."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j F Y"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j F Y, H:i"
TIME_FORMAT = "H:i"
YEAR_MONTH_FORMAT = "F Y"
MONTH_DAY_FORMAT = "j F"
