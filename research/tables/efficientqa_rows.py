"""Rows of EfficientQA's tables (Chaybouti, Saghe and Shabou, 2021)."""

from __future__ import annotations

from .result_files import JsonPath, Step, json_path
from .row_mapping import OTHER_SYSTEM, ExtraRow, Measured, TableMapping

__all__ = ["TABLES"]

_EXTRACTOR = "a MiniLM encoder and 29,500 questions, not RoBERTa-base and 88,000 questions"
_PHRASES = "a MiniLM encoder and 29,500 questions and 17,400 pairs, not 88,000 questions"
_WHOLE = (
    "all 2,067 paragraphs in one index, which the paper does not measure; ranked by the cascade"
)
_READER = (
    "the cascade's reader, 33 M parameters, trained on 49,000 questions and 39,500 mined from "
    "documentation"
)


def _both(file: str, *steps: Step, scale: float = 1.0) -> tuple[JsonPath, JsonPath]:
    found = (json_path(file, *steps, measure, scale=scale) for measure in ("EM", "F1"))
    exact, soft = found
    return exact, soft


def _extracted(encoder: str, ends: str, decoding: str) -> Measured:
    row = f"{encoder} {ends}"
    steps = ("rows", row, "measured", f"SQuAD v1.1 dev, {decoding}")
    return Measured(_both("phrase_extractor", *steps), _EXTRACTOR)


def _open(row: str) -> Measured:
    return Measured(_both("phrases_open", "rows", row), _WHOLE, "phrases_open")


_MINI = "all-MiniLM-L6-v2"

TABLES: dict[str, TableMapping] = {
    "phrases-1": TableMapping(
        {
            "classic, independent ends": _extracted(_MINI, "classic", "joint"),
            "classic, beam": _extracted(_MINI, "classic", "beam"),
            "start, then end": _extracted(_MINI, "conditional", "beam"),
        },
        run="phrase_extractor",
        extras=(
            ExtraRow("start, then end, the best pairs", _extracted(_MINI, "conditional", "joint")),
            ExtraRow(
                "start, then end, 12 layers",
                _extracted("ms-marco-MiniLM-L-12-v2", "conditional", "beam"),
            ),
            ExtraRow(
                "the shipped model's own, the best pairs",
                Measured(_both("phrases", "rows", "candidates hold it"), _PHRASES, "phrases"),
            ),
        ),
    ),
    "phrases-2": TableMapping(
        {
            **dict.fromkeys(("LSTM + SA", "LSTM + SA + ELMo", "DENSPI", "Ocean-Q"), OTHER_SYSTEM),
            "EfficientQA": Measured(_both("phrases", "rows", "nearest"), _PHRASES),
            "RoBERTa reader, question and text together": Measured(
                _both("reading", "squad1:dev"), _READER, "reading"
            ),
        },
        run="phrases",
        extras=(
            ExtraRow("all paragraphs, the nearest phrase", _open("nearest phrase")),
            ExtraRow("all paragraphs, phrases and a ranker", _open("nearest phrases, judged")),
            ExtraRow("all paragraphs, sentences first", _open("sentences first, then read")),
        ),
    ),
    "phrases-3": TableMapping(
        {
            "EfficientQA": Measured(
                _both("phrases_fr", "rows", "nearest"),
                "ten layers of the French cascade and 73,900 French questions, 66,300 of them "
                "translated, not CamemBERT and FQuAD",
            ),
            "CamemBERT reader, question and text together": Measured(
                _both("french", "paragraphs fquad:valid", "reading"),
                "the French cascade, which reads the phrase in the sentence that it ranks first; "
                "not trained on FQuAD",
                "french",
            ),
        },
        run="phrases_fr",
    ),
}
