"""
The contract of a ranker, as checks that anyone can run over their own.

With pytest, one test for each check:

    @pytest.mark.parametrize("check", askline.testing.CHECKS, ids=lambda check: check.__name__)
    def test_my_ranker_keeps_the_contract(check):
        check(MyRanker())

or all at once: `askline.testing.check_ranker(MyRanker())`. A broken rule raises AssertionError with
the rule, the input and what came.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from .errors import InputError
from .types import Hit, Ranker

__all__ = [
    "CHECKS",
    "check_determinism",
    "check_empty_list",
    "check_hard_texts",
    "check_input_kinds",
    "check_input_untouched",
    "check_many_candidates",
    "check_many_questions",
    "check_one_candidate",
    "check_order_of_scores",
    "check_permutation",
    "check_ranker",
    "check_repeated_candidates",
    "check_threads",
    "check_ties",
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
    """Every candidate exactly once, by its position in the list given."""
    _ranked(ranker, _QUESTION, _CANDIDATES)


def check_empty_list(ranker: Ranker) -> None:
    """No candidates, no hits, no error."""
    hits = ranker.rank(_QUESTION, [])
    assert hits == [], f"an empty list must give [], got {hits}"


def check_one_candidate(ranker: Ranker) -> None:
    """One candidate is the best, whatever it says."""
    for text in (_CANDIDATES[0], ""):
        _ranked(ranker, _QUESTION, [text])


def check_order_of_scores(ranker: Ranker) -> None:
    """Within a stage scores never rise, and a later stage's hits stand before an earlier one's."""
    hits = _ranked(ranker, _QUESTION, _CANDIDATES)
    for better, worse in pairwise(hits):
        assert better.stage >= worse.stage, f"stage {worse.stage} decided before {better.stage}"
        if better.stage == worse.stage:
            assert better.score >= worse.score, f"{better} stands before {worse}"


def check_ties(ranker: Ranker) -> None:
    """Candidates with equal scores keep the original order."""
    for candidates in (_CANDIDATES, ["the same"] * 7):
        hits = _ranked(ranker, _QUESTION, candidates)
        for first, second in pairwise(hits):
            if (first.stage, first.score) == (second.stage, second.score):
                assert first.index < second.index, f"tied, but {first} stands before {second}"


def check_repeated_candidates(ranker: Ranker) -> None:
    """The same text at two places is two candidates."""
    _ranked(ranker, _QUESTION, [*_CANDIDATES, *_CANDIDATES])


def check_determinism(ranker: Ranker) -> None:
    """The same input gives the same hits, also after other questions."""
    first = ranker.rank(_QUESTION, _CANDIDATES)
    ranker.rank("What else?", ["Something else.", *_CANDIDATES[:3]])
    again = ranker.rank(_QUESTION, _CANDIDATES)
    assert first == again, f"two calls differ: {first} and {again}"


def check_input_untouched(ranker: Ranker) -> None:
    """The caller's list is as it was before."""
    given = list(_CANDIDATES)
    ranker.rank(_QUESTION, given)
    assert given == list(_CANDIDATES), "the list of candidates was changed"


def check_input_kinds(ranker: Ranker) -> None:
    """A tuple ranks as a list does; one string in place of a list is refused, not cut up."""
    assert ranker.rank(_QUESTION, list(_CANDIDATES)) == ranker.rank(_QUESTION, _CANDIDATES)
    try:
        ranker.rank(_QUESTION, "one string")
    except (InputError, TypeError, ValueError):
        return
    raise AssertionError("a lone string was taken for a list of candidates")


def check_hard_texts(ranker: Ranker) -> None:
    """Blank, symbol-only, non-Latin, broken and very long texts rank, on either side."""
    _ranked(ranker, _QUESTION, _HARD_TEXTS)
    for text in ("", *_HARD_TEXTS):
        _ranked(ranker, text, _CANDIDATES)


def check_many_candidates(ranker: Ranker) -> None:
    """Five thousand candidates rank."""
    _ranked(ranker, _QUESTION, [f"Line {number} of the log." for number in range(5_000)])


def check_threads(ranker: Ranker) -> None:
    """Eight threads at once get the answers that one gets alone."""
    questions = [f"{_QUESTION} {number}" for number in range(16)]
    alone = [ranker.rank(question, _CANDIDATES) for question in questions]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda question: ranker.rank(question, _CANDIDATES), questions))
    assert together == alone, "threads at once get other answers than one thread alone"


def check_many_questions(ranker: Ranker) -> None:
    """Where there is `rank_many`, each question gets what it gets alone, to 0.001 in scores."""
    together = getattr(ranker, "rank_many", None)
    if together is None:
        return
    requests = [
        (f"{_QUESTION} {number}", _CANDIDATES[: number % (len(_CANDIDATES) + 1)])
        for number in range(16)
    ]
    found = together(requests)
    assert len(found) == len(requests), f"{len(requests)} questions, {len(found)} rankings"
    for (question, candidates), hits in zip(requests, found, strict=True):
        alone = _ranked(ranker, question, candidates)
        same = len(hits) == len(alone) and all(
            (one.index, one.stage) == (other.index, other.stage)
            and math.isclose(one.score, other.score, abs_tol=1e-3)
            for one, other in zip(hits, alone, strict=True)
        )
        assert same, f"together {question!r} gets {hits}, alone {alone}"


CHECKS: tuple[Callable[[Ranker], None], ...] = (
    check_permutation,
    check_empty_list,
    check_one_candidate,
    check_order_of_scores,
    check_ties,
    check_repeated_candidates,
    check_determinism,
    check_input_untouched,
    check_input_kinds,
    check_hard_texts,
    check_many_candidates,
    check_many_questions,
    check_threads,
)


def check_ranker(ranker: Ranker) -> None:
    """Run every check; the first broken rule raises AssertionError."""
    for check in CHECKS:
        check(ranker)


def _ranked(ranker: Ranker, question: str, candidates: Sequence[str]) -> list[Hit]:
    """The ranking, after the rule that holds for every input."""
    hits = ranker.rank(question, candidates)
    places = sorted(hit.index for hit in hits)
    wanted = list(range(len(candidates)))
    assert places == wanted, (
        f"{len(candidates)} candidates must be ranked exactly once each, got {places}"
    )
    for hit in hits:
        assert not math.isnan(hit.score), f"candidate {hit.index} has the score NaN"
    return hits
