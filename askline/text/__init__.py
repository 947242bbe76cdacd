"""Text in, text out: words and sentences, without state and without knowing about rankers."""
