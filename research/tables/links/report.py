"""The project report's tables: BERT and list-wise Cosinet on WikiQA."""

from __future__ import annotations

from ..places import Place, place
from .cosinet import light
from .link import Absent, Extra, Link, Measured, TableLinks
from .selectors import general

__all__ = ["TABLES"]


def _head(part: str, measure: str) -> Place:
    return place("transformers", "rows", "report_head", {}, part, measure)


def _bert(part: str) -> Measured:
    return Measured(
        (_head(part, "MAP"), _head(part, "MRR")),
        "the report's head on a MiniLM encoder of 33 M parameters, trained on WikiQA alone",
        "transformers",
    )


_ROWS: dict[str, Link] = {
    "BERT baseline, train": Absent("figures on what a model was trained on are not measured here"),
    "BERT baseline, dev": _bert("dev"),
    "BERT baseline": _bert("test"),
    **{
        name: Measured(
            tuple(light("wikiqa", f"Cosinet list + {name}", key) for key in ("MAP", "MRR")),
            "word vectors are MiniLM's; averaged over five seeds",
        )
        for name in ("RNN", "BiRNN", "LSTM", "BiLSTM")
    },
}

TABLES: dict[str, TableLinks] = {
    "report": TableLinks(
        _ROWS,
        run="light_rankers",
        extras=(
            Extra(
                "the general transformer, not adapted",
                Measured(
                    tuple(general("WikiQA", key) for key in ("MAP", "MRR")),
                    "never trained on WikiQA",
                    "transformers",
                ),
            ),
        ),
    ),
}
