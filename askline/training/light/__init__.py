"""Light rankers: convolutions over frozen word vectors, and a layer over the candidate list."""
