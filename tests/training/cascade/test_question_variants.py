"""Unanswerable, keyword and misspelled variants of questions."""

from __future__ import annotations

from askline.training.cascade.context_examples import PassageQuestion, TrainingPassage
from askline.training.cascade.question_variants import add_unanswerable, add_variants

SENTENCE = "In 1889 the engineer Gustave Eiffel built the largest tower of Paris."
QUESTION = PassageQuestion(
    "Who built the largest tower in Paris before 1900?", (0,), ((0, 21, 35),)
)
PASSAGES = [
    TrainingPassage("eiffel", (SENTENCE,), (QUESTION,)),
    TrainingPassage("london", ("Then Joseph Bazalgette built the sewers of London in a decade.",)),
]


def test_one_detail_of_an_unanswerable_question_differs() -> None:
    texts: set[str] = set()
    for seed in range(80):
        changed, other = add_unanswerable(PASSAGES, share=1.0, seed=seed)
        assert other == PASSAGES[1]
        assert changed.questions[0] == QUESTION
        for made in changed.questions[1:]:  # none if the rule that was drawn does not apply
            assert not made.answers
            assert not made.spans
            assert made.text != QUESTION.text
            assert "Gustave Eiffel" not in made.text
            texts.add(made.text)
    assert "Who built the smallest tower in Paris before 1900?" in texts
    assert "Who built the largest tower in London before 1900?" in texts
    assert any("Paris before 1900" not in text and "Paris" in text for text in texts)  # number
    assert any("tower" not in text for text in texts)  # noun


def test_a_question_without_a_detail_to_change_has_no_variant() -> None:
    bare = TrainingPassage("x", ("Yes.",), (PassageQuestion("Why?", (0,)),))
    for seed in range(20):
        (made,) = add_unanswerable([bare], share=1.0, seed=seed)
        assert made.questions == bare.questions


def test_variants_keep_their_answers() -> None:
    keywords, misspelled = set[str](), set[str]()
    for seed in range(40):
        made, _ = add_variants(PASSAGES, share=1.0, seed=seed)
        variant = made.questions[1]
        assert variant.answers == QUESTION.answers
        assert variant.spans == QUESTION.spans
        (misspelled if variant.text.startswith("Who") else keywords).add(variant.text)
    assert "built largest tower Paris before 1900" in keywords
    assert misspelled
    assert QUESTION.text not in misspelled


def test_share_zero_adds_nothing() -> None:
    assert add_unanswerable(PASSAGES, share=0.0) == PASSAGES
    assert add_variants(PASSAGES, share=0.0) == PASSAGES
