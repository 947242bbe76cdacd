"""Rows of the Sequential rerankers' tables (Matsubara, Vu and Moschitti, 2020)."""

from __future__ import annotations

from .result_files import JsonPath, json_path
from .row_mapping import (
    NO_ASNQ,
    NO_GPD,
    OTHER_SYSTEM,
    Absent,
    ExtraRow,
    Measured,
    RowSource,
    TableMapping,
    adapted,
    general,
    light,
)

__all__ = ["TABLES"]

_NO_LARGE = Absent(
    "no encoder of that size was trained: weights of BERT-large, which were not available, would "
    "fill the row"
)
_SELECTOR = "the cascade at full depth, ten layers and 29.8 M parameters, in place of BERT-base"
_CA = "; CA is trained on SQuADShifts, then on WikiQA, with the vectors that ship"
_FIRST = {
    "Jaccard": "jaccard",
    "BM25": "bm25",
    "idf-overlap": "idf-overlap",
    "Cosinet": "cosinet",
    "CA": "compare-aggregate",
}


def _padded(count: int) -> str:
    return f"wikiqa:test padded to {count}"


def after(first: str, keep: int, count: int) -> JsonPath:
    """P@1 of the cascade on the candidates that a first stage keeps."""
    own = (_padded(count), first, "kept", str(keep))
    return json_path("sequential", *own, "P@1", interval=(*own, "95 %"))


def _all(count: int) -> JsonPath:
    return json_path(
        "sequential", _padded(count), "all", "P@1", interval=(_padded(count), "all", "95 %")
    )


def _seconds(first: str, keep: int | str, count: int) -> JsonPath:
    return json_path("sequential_times", _padded(count), first, str(keep))


_RUNS = "sequential sequential_times"


def _table(count: int) -> dict[str, RowSource]:
    note = f"other data; {_SELECTOR}; seconds are of two CPU cores, the paper's of a V100"
    return {
        "BERT-base after Jaccard": Measured(
            (after("jaccard", 100, count), _seconds("jaccard", 100, count)), note
        ),
        "BERT-base after CA": Measured(
            (after("compare-aggregate", 100, count), _seconds("compare-aggregate", 100, count)),
            note + _CA,
        ),
        "BERT-base on all": Measured((_all(count), _seconds("all", "all", count)), note),
    }


def _extras(count: int) -> tuple[ExtraRow, ...]:
    on_gpu = json_path("adaptation", "seconds per question", str(count))
    named = {"BM25": "bm25", "idf-overlap": "idf-overlap", "Cosinet": "cosinet"}
    return (
        ExtraRow(
            "all, seconds of one H200",
            Measured(
                (_all(count), on_gpu),
                f"{_SELECTOR}; in bfloat16, tokenized before",
                "sequential adaptation",
            ),
        ),
        *(
            ExtraRow(
                f"after {name}, {keep} kept",
                Measured((after(spec, keep, count), _seconds(spec, keep, count)), _SELECTOR, _RUNS),
            )
            for name, spec in named.items()
            for keep in (100, 20)
        ),
    )


def _curve() -> tuple[ExtraRow, ...]:
    return tuple(
        ExtraRow(
            f"{name}, {keep} kept",
            Measured((after(spec, keep, 1300),), _SELECTOR + (_CA if name == "CA" else "")),
        )
        for name, spec in _FIRST.items()
        for keep in (5, 10, 20, 50, 100, 200, 400)
    )


_CA_2 = Measured(
    (
        *(light("wikiqa", "CA", measure) for measure in ("MAP", "MRR")),
        *(light("trecqa", "CA", measure, "light_trecqa") for measure in ("MAP", "MRR")),
    ),
    "CA as in Cosinet's paper; for TrecQA trained on TRAIN-ALL, whose labels are automatic, five "
    "seeds with the recipe of WikiQA",
    "light_rankers light_trecqa",
)
_BERT_2 = Measured(
    (
        *(adapted("wikiqa", measure) for measure in ("MAP", "MRR")),
        *(general("TrecQA", measure) for measure in ("MAP", "MRR")),
    ),
    "the general transformer of 33 M parameters, adapted to WikiQA; TrecQA without adaptation",
    "transformers",
)

TABLES: dict[str, TableMapping] = {
    "sequential-1": TableMapping({"GPD": NO_GPD, "ASNQ": NO_ASNQ, "ASNQ++": NO_ASNQ}),
    "sequential-2": TableMapping(
        {
            "CA, Wang and Jiang": OTHER_SYSTEM,
            "CA + LM + LC, Yoon et al.": OTHER_SYSTEM,
            "CA": _CA_2,
            "BERT-base": _BERT_2,
        },
        run="transformers",
    ),
    "sequential-3": TableMapping(
        dict.fromkeys(
            ("Jaccard 100", "Jaccard 200", "Jaccard 250", "Jaccard 300", "CA 100", "all"), NO_GPD
        )
    ),
    "sequential-4": TableMapping(
        _table(400)
        | dict.fromkeys(
            ("BERT-large after Jaccard", "BERT-large after CA", "BERT-large on all"), _NO_LARGE
        ),
        run=_RUNS,
        replacement="WikiQA test padded to 400 candidates replaces ASNQ",
        extras=_extras(400),
    ),
    "sequential-5": TableMapping(
        _table(1300),
        run=_RUNS,
        replacement="WikiQA test padded to 1,300 candidates replaces ASNQ++",
        extras=_extras(1300),
    ),
    "sequential-figure-2": TableMapping(
        {
            "Jaccard, 100 kept": Measured((after("jaccard", 100, 1300),), _SELECTOR),
            "CA, 100 kept": Measured((after("compare-aggregate", 100, 1300),), _SELECTOR + _CA),
            "all": Measured((_all(1300),), _SELECTOR),
        },
        run="sequential",
        replacement="WikiQA test padded to 1,300 candidates replaces ASNQ",
        extras=_curve(),
    ),
}
