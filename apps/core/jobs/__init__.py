"""Work beside requests: sweeps, the worker, leases, the bus between processes, and the parent of them all."""
