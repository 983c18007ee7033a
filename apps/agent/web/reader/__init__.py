"""Documents that strangers wrote, turned into text in processes of their own.

Parsers of HTML and PDF can be made to run for hours, to eat all memory or to crash. So one small process, without
settings, database or secrets, waits with the parsers loaded (`child`) and makes a copy of itself for every document;
the copy has limits that the kernel enforces. `parent` is what the server calls.
"""
