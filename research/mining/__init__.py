"""Training questions that are mined from documentation. The command is `research.mining.build`."""
