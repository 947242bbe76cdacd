"""
How shipped and published models were trained, from openly licensed data alone.

`python -m research.recipes.first_stage` trains the first stage that ships with askline,
`python -m research.recipes.word_vectors` its word vectors, and `python -m research.recipes.general`
the general cross-encoder. `research.recipes.context_teacher` trains the context pass on more
questions, beside a larger teacher, and `research.recipes.context_calibration` fits what
`Corpus.ask` makes of it. `research.recipes.phrase_documents` distils the document encoder of the
phrase model. `research.recipes.french` has the French models.
"""
