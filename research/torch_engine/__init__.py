"""The cascade in torch, stage by stage, for GPU benchmarks and as a float reference."""
