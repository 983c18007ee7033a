"""Forms of the accounts' pages. What they accept is decided by the services; here is how it is asked for."""
