"""
Search over the indexes of several shards as if they were one index.

BM25 needs three numbers of the whole corpus: how many passages there are, how many of them contain
each term, and how long they are on average. Each index knows only its own. The sums over all of
them are the numbers of the whole. Terms are weighted so that each index ranks with the document
frequencies of the whole. The average length cannot be set: from what tantivy explains of a score,
the score with the average length of the whole is computed. The ratio of the two is bounded, so only
passages that can be among the best are computed, and no passage that belongs there is missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heappush, heappushpop
from typing import NamedTuple

from .bm25 import K1, B, inverse_document_frequency
from .passages import PassageHit
from .search_index import (
    FieldStatistics,
    FieldTerm,
    FoundPassage,
    SearchIndex,
    TermMatch,
    field_terms,
    term_weights,
)

__all__ = ["MergedSearch"]


class _ShardHits(NamedTuple):
    """Passages of one index, and what is needed to score them with the numbers of the whole."""

    number: int
    search: SearchIndex
    weights: Mapping[FieldTerm, float]
    limit: int
    found: list[FoundPassage]
    highest: float
    """The most by which the score of a passage can be higher in the whole than in its index."""


class MergedSearch:
    """
    Several search indexes with the scores of one.

    The indexes have numbers. `number_of` turns such a number and the id of a document in that index
    into the id of the document in the whole.
    """

    def __init__(
        self, indexes: Mapping[int, SearchIndex], number_of: Callable[[int, int], int]
    ) -> None:
        self.indexes = dict(indexes)
        self._number_of = number_of
        self.stem = next(iter(self.indexes.values())).stem

    def search(
        self, terms: Mapping[str, float], limit: int, *, titles: float = 0.0
    ) -> list[PassageHit]:
        """At most `limit` passages of all indexes with the highest BM25 scores, best first."""
        weights = self._whole_weights(field_terms(terms, titles))
        shards = [self._find(number, weights, limit) for number in self.indexes]
        while True:
            best = self._best(shards, limit)
            # An index whose last passage could still be among the best may have more of them.
            least = best[-1].score if len(best) == limit else 0.0
            longer = {
                shard.number
                for shard in shards
                if len(shard.found) == shard.limit
                and shard.found[-1].hit.score * shard.highest > least
            }
            if not longer:
                return best
            shards = [
                self._find(each.number, weights, 2 * each.limit) if each.number in longer else each
                for each in shards
            ]

    def term_weights(self, terms: Iterable[str]) -> dict[str, float]:
        """The inverse document frequency of each term over passages; unknown terms are left out."""
        return term_weights(self._frequencies([("text", term) for term in terms]), self._passages)

    @cached_property
    def _passages(self) -> int:
        """Passages of all indexes, and one stamp, because every index has one."""
        return sum(each.passages for each in self.indexes.values()) - (len(self.indexes) - 1)

    @cached_property
    def _statistics(self) -> dict[int, dict[str, FieldStatistics]]:
        return {number: index.field_statistics() for number, index in self.indexes.items()}

    @cached_property
    def _whole(self) -> dict[str, FieldStatistics]:
        """The statistics of each field over all indexes."""
        whole = {}
        statistics = self._statistics.values()
        passages = sum(next((own.passages for own in each.values()), 1) for each in statistics)
        passages -= len(self.indexes) - 1  # every index has a stamp
        for field in {field for each in statistics for field in each}:
            known = [each[field] for each in statistics if field in each]
            length = sum(own.passages * own.average_length for own in known)
            whole[field] = FieldStatistics(passages, length / passages)
        return whole

    def _frequencies(self, terms: Sequence[FieldTerm]) -> dict[FieldTerm, int]:
        counts = dict.fromkeys(terms, 0)
        for index in self.indexes.values():
            for term, count in index.frequencies(terms).items():
                counts[term] += count
        return counts

    def _whole_weights(self, weights: Mapping[FieldTerm, float]) -> dict[FieldTerm, float]:
        """The weight of each term times its inverse document frequency over all indexes."""
        counts = self._frequencies(list(weights))
        return {
            term: weight * inverse_document_frequency(counts[term], self._whole[term[0]].passages)
            for term, weight in weights.items()
            if counts[term]
        }

    def _find(self, number: int, weights: Mapping[FieldTerm, float], limit: int) -> _ShardHits:
        """The best passages of one index, with the document frequencies of the whole."""
        index, own = self.indexes[number], self._statistics[number]
        counts = index.frequencies(weights)
        known = {
            term: weight / inverse_document_frequency(counts[term], own[term[0]].passages)
            for term, weight in weights.items()
            if counts[term]
        }
        ratios = [
            self._whole[field].average_length / own[field].average_length
            for field in {field for field, _ in known}
        ]
        highest = max([1.0, *ratios])
        return _ShardHits(number, index, known, limit, index.find(known, limit), highest)

    def _best(self, shards: Sequence[_ShardHits], limit: int) -> list[PassageHit]:
        """The best of the passages that were found, by their scores in the whole."""
        possible = sorted(
            ((each.hit.score * own.highest, own, each) for own in shards for each in own.found),
            key=lambda entry: -entry[0],
        )
        explain = {shard.number: shard.search.explainer(shard.weights) for shard in shards}
        hits: list[PassageHit] = []
        best_scores: list[float] = []  # a heap of the `limit` highest
        for at_most, shard, (hit, address) in possible:
            if len(best_scores) == limit and at_most < best_scores[0]:
                break
            own = self._statistics[shard.number]
            score = sum(self._score(match, own) for match in explain[shard.number](address))
            number = self._number_of(shard.number, hit.document_id)
            hits.append(hit._replace(document_id=number, score=score))
            (heappush if len(best_scores) < limit else heappushpop)(best_scores, score)
        return sorted(hits, key=lambda hit: -hit.score)[:limit]

    def _score(self, match: TermMatch, own: Mapping[str, FieldStatistics]) -> float:
        """What a term adds to the score, with the average length of the whole."""
        in_index, in_whole = (
            match.occurrences + K1 * (1 - B + B * match.length / each[match.field].average_length)
            for each in (own, self._whole)
        )
        return match.score * in_index / in_whole
