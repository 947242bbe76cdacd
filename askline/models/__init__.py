"""What a model folder holds: layouts, word vectors, weights, its card."""
