"""Words, sentences and file readers. Stateless; knows nothing about rankers."""
