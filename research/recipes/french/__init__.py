"""
How the French cascade was trained: parallel text, a vocabulary of its own, and an English teacher.

`python -m research.recipes.french.text` makes the training arrays, `...french.train` trains on a
GPU, `...french.folder` writes and calibrates the model folder. research/notes/french.md has the
figures.
"""
