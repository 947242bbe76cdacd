"""Training questions: mined from documentation (`build`), or converted (`question_sets`)."""
