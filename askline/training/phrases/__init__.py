"""Phrase models: an extractor of candidate phrases, teachers, and the phrase encoder."""
