"""Sandboxes in E2B's cloud, through its own SDK: a fresh virtual machine each time.

What a limit means here: time is kept by Izzy and, should Izzy die, by E2B, which ends every sandbox by itself; memory, files
and processor time of a capability by the process that runs it (`inside`), everything else by the size of the machine.
A host is allowed by its name, whatever the port: E2B's allow-list knows no ports. Nothing of the SDK is imported before
a sandbox is made.
"""
