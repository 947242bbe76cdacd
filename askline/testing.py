"""
The contract of a ranker, as checks that anyone can run over their own.

With pytest, one test per check:

    @pytest.mark.parametrize("check", askline.testing.CHECKS, ids=lambda check: check.__name__)
    def test_my_ranker_follows_the_contract(check):
        check(MyRanker())

or all at once: `askline.testing.check_ranker(MyRanker())`. A broken rule raises AssertionError with
the rule, the input and the result.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from .errors import InputError
from .rankers.base import Ranker
from .types import Hit, Passage

__all__ = [
    "CHECKS",
    "check_async",
    "check_blank_question",
    "check_composition",
    "check_deadline",
    "check_determinism",
    "check_documents",
    "check_empty_list",
    "check_hard_texts",
    "check_input_unchanged",
    "check_many_candidates",
    "check_many_requests",
    "check_one_candidate",
    "check_order_of_scores",
    "check_passages",
    "check_permutation",
    "check_predict",
    "check_ranker",
    "check_repeated_candidates",
    "check_score",
    "check_single_string",
    "check_threads",
    "check_ties",
    "check_top_k",
    "check_trace",
]

_QUESTION = "When was the first lighthouse on the rock lit?"
_CANDIDATES = (
    "The rock lies nine miles off the coast.",
    "Its first lighthouse was lit in November 1698.",
    "",
    "A storm took the tower and its builder five years later.",
    "Its first lighthouse was lit in November 1698.",
    "Keepers wrote the weather down twice a day, when the sea let them.",
)
_HARD_TEXTS = (
    "   \t\n ",
    "?!… — «»",
    "naïve café",
    "na\u0131\u0308ve cafe\u0301",
    "灯台は1698年に点灯した。",
    "المنارة الأولى",
    "\U0001f5fc\U0001f44d\U0001f3fd",
    "a\x00b\u200b\ufeff",
    "\ud800 lone surrogate",
    "word " * 2_000,
    "x" * 20_000,
)


def check_permutation(ranker: Ranker) -> None:
    """Every document is returned exactly once, with its index in the list given."""
    _ranked(ranker, _QUESTION, _CANDIDATES)


def check_empty_list(ranker: Ranker) -> None:
    """No documents give no hits and no error."""
    hits = ranker.rank(_QUESTION, [])
    assert hits == [], f"an empty list must give [], got {hits}"


def check_one_candidate(ranker: Ranker) -> None:
    """A single document ranks first, whatever its text."""
    for text in (_CANDIDATES[0], ""):
        _ranked(ranker, _QUESTION, [text])


def check_order_of_scores(ranker: Ranker) -> None:
    """Scores never rise within a stage, and hits of a later stage precede those of an earlier."""
    hits = _ranked(ranker, _QUESTION, _CANDIDATES)
    for better, worse in pairwise(hits):
        assert better.stage >= worse.stage, f"stage {worse.stage} precedes {better.stage}"
        if better.stage == worse.stage:
            assert better.score >= worse.score, f"{better} precedes {worse}"


def check_ties(ranker: Ranker) -> None:
    """Documents with equal scores keep the original order."""
    for candidates in (_CANDIDATES, ["the same"] * 7):
        hits = _ranked(ranker, _QUESTION, candidates)
        for first, second in pairwise(hits):
            if (first.stage, first.score) == (second.stage, second.score):
                assert first.index < second.index, f"tied, but {first} precedes {second}"


def check_repeated_candidates(ranker: Ranker) -> None:
    """The same text at two positions is two documents."""
    _ranked(ranker, _QUESTION, [*_CANDIDATES, *_CANDIDATES])


def check_determinism(ranker: Ranker) -> None:
    """The same input gives the same hits, also after other questions."""
    first = ranker.rank(_QUESTION, _CANDIDATES)
    ranker.rank("What else?", ["Something else.", *_CANDIDATES[:3]])
    again = ranker.rank(_QUESTION, _CANDIDATES)
    assert first == again, f"two calls differ: {first} and {again}"


def check_input_unchanged(ranker: Ranker) -> None:
    """The caller's list is not modified."""
    given = list(_CANDIDATES)
    ranker.rank(_QUESTION, given)
    assert given == list(_CANDIDATES), "the list of documents was modified"


def check_documents(ranker: Ranker) -> None:
    """A list, a tuple, a generator and mappings rank alike; a hit has the caller's own object."""
    wanted = ranker.rank(_QUESTION, list(_CANDIDATES))
    mappings = [{"body": text, "id": number} for number, text in enumerate(_CANDIDATES)]
    assert ranker.rank(_QUESTION, _CANDIDATES) == wanted
    assert ranker.rank(_QUESTION, (text for text in _CANDIDATES)) == wanted
    hits = ranker.rank(_QUESTION, mappings, text="body")
    assert hits == wanted, f"mappings give {hits}, strings {wanted}"
    for hit in hits:
        assert hit.document is mappings[hit.index], f"hit {hit.index} has another document"
        assert hit.text == _CANDIDATES[hit.index], f"hit {hit.index} has another text"


def check_passages(ranker: Ranker) -> None:
    """
    The sentences of passages are all returned, and a hit has its sentence and its passage.

    Where the ranker does not read passages, the sentences rank as strings do. Strings and passages
    do not mix, and a passage without sentences is allowed.
    """
    passages = [Passage(_CANDIDATES[:3], "The rock"), Passage(()), Passage(_CANDIDATES[3:])]
    hits = ranker.rank(_QUESTION, passages)
    assert sorted(hit.index for hit in hits) == list(range(len(_CANDIDATES))), (
        f"{len(_CANDIDATES)} sentences must be returned exactly once each, got {hits}"
    )
    for hit in hits:
        assert hit.text == _CANDIDATES[hit.index], f"hit {hit.index} has another text"
        assert hit.document is passages[0 if hit.index < 3 else 2], f"{hit} has another passage"
        if hit.span is not None:
            assert 0 <= hit.span.start < hit.span.end <= len(hit.text), f"{hit.span} in {hit.text}"
    for better, worse in pairwise(hits):
        assert (better.stage, better.score) >= (worse.stage, worse.score) or (
            better.stage > worse.stage
        ), f"{better} precedes {worse}"
    if not ranker.reads_passages:
        wanted = ranker.rank(_QUESTION, _CANDIDATES)
        assert hits == wanted, f"passages give {hits}, strings {wanted}"
    assert ranker.rank(_QUESTION, passages) == hits, "two calls differ"
    (many,) = ranker.rank_many([(_QUESTION, passages)])
    assert _close(many, hits)
    assert _close(ranker.trace(_QUESTION, passages).hits, hits)
    assert _close(asyncio.run(ranker.arank(_QUESTION, passages)), hits)
    late = ranker.rank(_QUESTION, passages, deadline_ms=0.001)
    assert sorted(hit.index for hit in late) == list(range(len(_CANDIDATES)))
    assert ranker.rank(_QUESTION, [Passage(())]) == []
    assert len(ranker.read(_QUESTION, passages)) == len(_CANDIDATES)
    _assert_refused(lambda: ranker.rank(_QUESTION, [passages[0], "one string"]), "a mixed list")
    _assert_refused(lambda: ranker.rank(_QUESTION, passages[0]), "one passage as documents")  # type: ignore[arg-type]
    _assert_refused(lambda: ranker.rank(_QUESTION, [Passage("a string")]), "a string as sentences")


def check_single_string(ranker: Ranker) -> None:
    """One string in place of a list is refused, not split into characters."""
    _assert_refused(lambda: ranker.rank(_QUESTION, "one string"), "a string as documents")


def check_blank_question(ranker: Ranker) -> None:
    """An empty or blank question is refused."""
    for question in ("", " \t\n"):
        _assert_refused(lambda text=question: ranker.rank(text, _CANDIDATES), repr(question))  # type: ignore[misc]


def check_top_k(ranker: Ranker) -> None:
    """`top_k` returns the head of the whole ranking."""
    whole = ranker.rank(_QUESTION, _CANDIDATES)
    for count in (1, 3, 100):
        assert ranker.rank(_QUESTION, _CANDIDATES, top_k=count) == whole[:count]
    _assert_refused(lambda: ranker.rank(_QUESTION, _CANDIDATES, top_k=0), "top_k=0")


def check_hard_texts(ranker: Ranker) -> None:
    """Symbols, other scripts, invalid Unicode and very long texts rank, on either side."""
    _ranked(ranker, _QUESTION, _HARD_TEXTS)
    for text in _HARD_TEXTS:
        if text.strip():
            _ranked(ranker, text, _CANDIDATES)


def check_many_candidates(ranker: Ranker) -> None:
    """Five thousand documents rank."""
    _ranked(ranker, _QUESTION, [f"Line {number} of the log." for number in range(5_000)])


def check_many_requests(ranker: Ranker) -> None:
    """`rank_many` gives each question what it gets alone, to 0.001 in scores."""
    requests = [
        (f"{_QUESTION} {number}", _CANDIDATES[: number % (len(_CANDIDATES) + 1)])
        for number in range(16)
    ]
    found = ranker.rank_many(requests)
    assert len(found) == len(requests), f"{len(requests)} requests, {len(found)} rankings"
    for (question, candidates), hits in zip(requests, found, strict=True):
        alone = _ranked(ranker, question, candidates)
        assert _close(hits, alone), f"in a batch {question!r} gets {hits}, alone {alone}"


def check_trace(ranker: Ranker) -> None:
    """`trace` has the hits of `rank`, and a report for each stage that a hit names."""
    ranking = ranker.trace(_QUESTION, _CANDIDATES)
    assert _close(ranking.hits, ranker.rank(_QUESTION, _CANDIDATES))
    stages = {hit.stage for hit in ranking.hits}
    assert max(stages) < len(ranking.stages), f"stages {stages}, reports {ranking.stages}"


def check_score(ranker: Ranker) -> None:
    """`score` has the scores of `rank`, in the order of the documents."""
    scores = ranker.score(_QUESTION, _CANDIDATES)
    wanted = {hit.index: hit.score for hit in ranker.rank(_QUESTION, _CANDIDATES)}
    assert scores.tolist() == [wanted[index] for index in range(len(_CANDIDATES))]


def check_predict(ranker: Ranker) -> None:
    """`predict` scores a pair independent of other pairs, or refuses if the ranker is listwise."""
    pairs = [(_QUESTION, text) for text in _CANDIDATES]
    if ranker.listwise:
        _assert_refused(lambda: ranker.predict(pairs), "predict with a listwise ranker")
        return
    together = ranker.predict(pairs)
    alone = [float(ranker.predict([pair])[0]) for pair in pairs]
    assert np.allclose(together, alone, atol=1e-3), f"together {together}, alone {alone}"


def check_deadline(ranker: Ranker) -> None:
    """With ample time a deadline changes nothing; with none left, every document is returned."""
    wanted = ranker.rank(_QUESTION, _CANDIDATES)
    assert _close(ranker.rank(_QUESTION, _CANDIDATES, deadline_ms=1e6), wanted)
    hits = ranker.rank(_QUESTION, _CANDIDATES, deadline_ms=0.001)
    assert sorted(hit.index for hit in hits) == list(range(len(_CANDIDATES)))
    _assert_refused(lambda: ranker.rank(_QUESTION, _CANDIDATES, deadline_ms=0), "deadline_ms=0")


def check_async(ranker: Ranker) -> None:
    """The async twins return what the plain methods return."""
    wanted = ranker.rank(_QUESTION, _CANDIDATES)
    assert asyncio.run(ranker.arank(_QUESTION, _CANDIDATES)) == wanted
    assert _close(asyncio.run(ranker.arank_many([(_QUESTION, _CANDIDATES)]))[0], wanted)
    assert _close(asyncio.run(ranker.atrace(_QUESTION, _CANDIDATES)).hits, wanted)


def check_composition(ranker: Ranker) -> None:
    """`a.top(2).then(b)` is `a % 2 >> b`, and both return every document."""
    words = ranker.top(2).then(ranker)
    assert str(words) == str(ranker % 2 >> ranker)
    _ranked(words, _QUESTION, _CANDIDATES)


def check_threads(ranker: Ranker) -> None:
    """Eight threads at once get the hits that one thread gets alone."""
    questions = [f"{_QUESTION} {number}" for number in range(16)]
    alone = [ranker.rank(question, _CANDIDATES) for question in questions]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda question: ranker.rank(question, _CANDIDATES), questions))
    assert together == alone, "several threads get other hits than one thread alone"


CHECKS: tuple[Callable[[Ranker], None], ...] = (
    check_permutation,
    check_empty_list,
    check_one_candidate,
    check_order_of_scores,
    check_ties,
    check_repeated_candidates,
    check_determinism,
    check_input_unchanged,
    check_documents,
    check_passages,
    check_single_string,
    check_blank_question,
    check_top_k,
    check_hard_texts,
    check_many_candidates,
    check_many_requests,
    check_trace,
    check_score,
    check_predict,
    check_deadline,
    check_async,
    check_composition,
    check_threads,
)


def check_ranker(ranker: Ranker) -> None:
    """Run every check; the first broken rule raises AssertionError."""
    for check in CHECKS:
        check(ranker)


def _ranked(ranker: Ranker, question: str, candidates: Sequence[str]) -> list[Hit]:
    """The ranking, after the checks that hold for every input."""
    hits = ranker.rank(question, candidates)
    found = sorted(hit.index for hit in hits)
    assert found == list(range(len(candidates))), (
        f"{len(candidates)} documents must be returned exactly once each, got {found}"
    )
    for hit in hits:
        assert not math.isnan(hit.score), f"document {hit.index} has the score NaN"
        if hit.probability is not None:
            assert 0 <= hit.probability <= 1, f"probability {hit.probability} of {hit.index}"
    return hits


def _close(hits: Sequence[Hit], others: Sequence[Hit]) -> bool:
    return len(hits) == len(others) and all(
        (one.index, one.stage) == (other.index, other.stage)
        and math.isclose(one.score, other.score, abs_tol=1e-3)
        for one, other in zip(hits, others, strict=True)
    )


def _assert_refused(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except InputError:
        return
    raise AssertionError(f"{what} must raise InputError")
