"""
A reader for a finished cascade.

The weights in the cascade's folder, int8 or float, are the start, and none of them changes. What is
trained is a low-rank adapter (`models/cascade_config.py`).
"""
