"""Statistics of a question set, as in Cosinet's Table 2 and the Cascade Transformer's Table 1."""

from __future__ import annotations

from dataclasses import dataclass

from ..text.words import split_words
from ..types import QuestionSet

__all__ = [
    "DatasetStatistics",
    "compute_statistics",
]


@dataclass(frozen=True, slots=True)
class DatasetStatistics:
    """
    Counts over all questions of a set; averages of an empty set are 0.

    The Cascade Transformer's table counts only questions with an answer: filter first.
    """

    name: str
    questions: int
    candidates: int
    """With repetitions."""
    answerable: int
    """Questions with at least one answer."""
    both: int
    """Questions with at least one answer and at least one negative."""
    positives: int
    """Candidates that are answers."""
    question_words: float
    """Average length of a question in words (`askline.text.words`)."""
    candidate_words: float
    """Average length of a candidate in words, with repetitions."""

    @property
    def percent_answerable(self) -> float:
        """The share of answerable questions, from 0 to 100."""
        return 100 * _ratio(self.answerable, self.questions)

    @property
    def candidates_per_question(self) -> float:
        """Average length of a candidate list."""
        return _ratio(self.candidates, self.questions)

    @property
    def positives_per_question(self) -> float:
        """Average number of answers in a candidate list."""
        return _ratio(self.positives, self.questions)


def compute_statistics(question_set: QuestionSet) -> DatasetStatistics:
    """One pass over the set; a text that several questions share is tokenized once."""
    lengths: dict[str, int] = {}
    question_words = candidate_words = positives = answerable = both = 0
    for question in question_set:
        question_words += len(split_words(question.text))
        answers = 0
        for candidate in question.candidates:
            length = lengths.get(candidate.text)
            if length is None:
                length = lengths[candidate.text] = len(split_words(candidate.text))
            candidate_words += length
            answers += candidate.is_answer
        positives += answers
        answerable += answers > 0
        both += 0 < answers < len(question.candidates)
    return DatasetStatistics(
        name=question_set.name,
        questions=len(question_set),
        candidates=question_set.candidate_count,
        answerable=answerable,
        both=both,
        positives=positives,
        question_words=_ratio(question_words, len(question_set)),
        candidate_words=_ratio(candidate_words, question_set.candidate_count),
    )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else 0.0
