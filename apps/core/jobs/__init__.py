"""What runs beside requests: sweeps, the worker, leases, word between processes, and the parent of them all."""
