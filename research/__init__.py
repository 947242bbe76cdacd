"""The papers' tables, benchmarks, result files and notes. Works in a clone only, not installed."""
