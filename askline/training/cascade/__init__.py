"""The Cascade Transformer: one encoder, classifiers at several depths, and a span reader."""
