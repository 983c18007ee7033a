"""Benchmarks: every figure the README gives comes from one of these modules, beside a baseline of the same run."""
