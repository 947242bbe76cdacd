"""
How the first stage that comes with askline was made, from openly licensed data alone.

`python -m askline.training.first_stage --data DIR --out DIR` makes it again. Its word vectors are
made by `python -m askline.training.first_stage.distil`.
"""
