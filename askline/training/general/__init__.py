"""The general model, made again by `python -m askline.training.general`."""
