"""
Training: the only package that imports torch.

`loop.py` is the training loop that all model families share. Each family has a subpackage with its
network, its examples and its training task: `light` (cosinet, compare-aggregate, relational-cnn),
`transformer` (cross-encoders), `cascade` (also a reader or a context pass for a finished cascade)
and `phrases` (extractor and phrase encoder).
"""
