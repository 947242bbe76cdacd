"""
PyTerrier: a transformer that ranks the texts of a result frame again, without Java.

    >>> retriever >> pt.text.get_text(dataset, "text") >> AsklineReranker()  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MissingExtraError
from ..rankers.base import Ranker
from .common import DEFAULT_SPEC, loaded_ranker, rank_texts

try:
    import pandas as pd
    import pyterrier as pt
except ImportError as error:
    raise MissingExtraError("The PyTerrier integration", "pyterrier") from error

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["AsklineReranker"]


class AsklineReranker(pt.Transformer):
    """
    Takes `qid, query, docno` and a column of texts; sets `score` and `rank`.

    The score is a probability from 0 to 1. The first rank is 0. Other columns are kept, and the
    frame of the caller is not changed.
    """

    def __init__(
        self,
        ranker: str | Ranker = DEFAULT_SPEC,
        *,
        text_field: str = "text",
        deadline_ms: float | None = None,
    ) -> None:
        """`ranker` is a spec text or a Ranker, `deadline_ms` the most time per query."""
        self.ranker = ranker
        self.text_field = text_field
        self.deadline_ms = deadline_ms

    def transform(self, inp: DataFrame) -> DataFrame:
        """Rank the texts of each query."""
        pt.validate.result_frame(inp, extra_columns=["query", self.text_field])
        ranker = loaded_ranker(self.ranker)
        parts = []
        for _, group in inp.groupby("qid", sort=False):
            texts = [text if isinstance(text, str) else "" for text in group[self.text_field]]
            question = str(group["query"].iloc[0])
            ranked = rank_texts(ranker, question, texts, deadline_ms=self.deadline_ms)
            part = group.iloc[[each.index for each in ranked]].copy()
            part["score"] = [each.relevance_score for each in ranked]
            parts.append(part)
        found = pd.concat(parts) if parts else inp.assign(score=pd.Series(dtype="float64"))
        # Equal scores keep the order of the rows, which is that of the ranking.
        return pt.model.add_ranks(found)

    def __repr__(self) -> str:
        return f"AsklineReranker({str(self.ranker)!r})"
