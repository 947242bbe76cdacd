"""Benchmarks: each program prints a table and saves its figures to `research/results/`."""
