"""
Labelled question sets: one reader for each format, all of them into one `QuestionSet`.

`load("wikiqa:test")` finds a dataset by name; the readers take the path of a file. What is wrong
with a file is raised as one `DataError` with every bad row, and nothing of the file is returned.
"""

from __future__ import annotations

from .jsonl_questions import read_jsonl, read_pairs, write_jsonl
from .natural_questions import read_asnq, read_natural_questions
from .registry import known_sets, load, load_paragraphs
from .selqa import read_selqa
from .squad import (
    AnswerSpan,
    Paragraph,
    ParagraphSet,
    SpanQuestion,
    hold_out,
    read_paragraphs,
    read_squad,
    to_sentences,
)
from .statistics import SetStatistics, statistics
from .transforms import pad, select
from .trecqa import read_trecqa, read_trecqa_all
from .wikiqa import read_wikiqa

__all__ = [
    "AnswerSpan",
    "Paragraph",
    "ParagraphSet",
    "SetStatistics",
    "SpanQuestion",
    "hold_out",
    "known_sets",
    "load",
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
    "select",
    "statistics",
    "to_sentences",
    "write_jsonl",
]
