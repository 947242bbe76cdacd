"""Torch-free execution of trained networks."""
