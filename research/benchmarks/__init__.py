"""Side-by-side measurements: each script prints a table and keeps its figures in `research/results/`."""
