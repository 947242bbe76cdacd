"""
Labelled question sets: a reader per format, all of them return a `QuestionSet`.

`load_dataset("wikiqa:test")` finds a dataset by name; the readers take the path of a file. If a
file has problems, one `DataError` reports every bad row, and nothing of the file is returned. The
readers are imported when they are first used: a command that reads lines needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_imports import lazy_imports

if TYPE_CHECKING:
    from .datasets import (
        DatasetStatistics,
        compute_statistics,
        dataset_names,
        load_dataset,
        load_paragraphs,
        read_selqa,
        read_wikiqa,
    )
    from .jsonl_questions import read_jsonl, read_pairs, write_jsonl
    from .natural_questions import read_asnq, read_natural_questions
    from .squad import (
        AnswerSpan,
        Paragraph,
        ParagraphSet,
        SpanQuestion,
        hold_out,
        read_paragraphs,
        read_squad,
        to_question_set,
    )
    from .transforms import filter_questions, pad
    from .trecqa import read_trecqa, read_trecqa_all

_MODULES = {
    "datasets": (
        "DatasetStatistics",
        "compute_statistics",
        "dataset_names",
        "load_dataset",
        "load_paragraphs",
        "read_selqa",
        "read_wikiqa",
    ),
    "jsonl_questions": (
        "read_jsonl",
        "read_pairs",
        "write_jsonl",
    ),
    "natural_questions": (
        "read_asnq",
        "read_natural_questions",
    ),
    "squad": (
        "AnswerSpan",
        "Paragraph",
        "ParagraphSet",
        "SpanQuestion",
        "hold_out",
        "read_paragraphs",
        "read_squad",
        "to_question_set",
    ),
    "transforms": (
        "filter_questions",
        "pad",
    ),
    "trecqa": (
        "read_trecqa",
        "read_trecqa_all",
    ),
}

__all__ = [
    "AnswerSpan",
    "DatasetStatistics",
    "Paragraph",
    "ParagraphSet",
    "SpanQuestion",
    "compute_statistics",
    "dataset_names",
    "filter_questions",
    "hold_out",
    "load_dataset",
    "load_paragraphs",
    "pad",
    "read_asnq",
    "read_jsonl",
    "read_natural_questions",
    "read_pairs",
    "read_paragraphs",
    "read_selqa",
    "read_squad",
    "read_trecqa",
    "read_trecqa_all",
    "read_wikiqa",
    "to_question_set",
    "write_jsonl",
]


__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
