from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import askline
from askline.errors import InputError, SpecError
from askline.rankers import BM25, Jaccard, OriginalOrder, Pipeline, RandomOrder, WordOverlap
from askline.rankers.base import Ranker

BACKWARDS = """
from dataclasses import dataclass
from typing import ClassVar

from askline import Ranker


@dataclass(frozen=True)
class Backwards(Ranker):
    name: ClassVar[str] = "backwards"

    def score_texts(self, question, texts):
        return list(range(len(texts)))
"""


@pytest.mark.parametrize(
    ("spec", "ranker"),
    [
        ("rr", OriginalOrder()),
        ("jaccard % 100 >> bm25", Jaccard() % 100 >> BM25()),
        ("jaccard%100>>bm25", Jaccard() % 100 >> BM25()),
        (" wo( ties = reversed )\n", WordOverlap(ties="reversed")),
        ("wo('original', 3)", WordOverlap(ties="original", seed=3)),
        ('wo(ties="random")', WordOverlap()),
        ("bm25(k1=1.2, b=0)", BM25(k1=1.2, b=0)),
        ("(jaccard % 9 >> rr) % 3 >> bm25", (Jaccard() % 9 >> OriginalOrder()) % 3 >> BM25()),
        ("((rr))", OriginalOrder()),
        ("rr % 9 % 3", OriginalOrder() % 9 % 3),
        ("rr()", OriginalOrder()),
    ],
)
def test_load_builds_the_ranker(spec: str, ranker: Ranker) -> None:
    assert askline.load(spec) == ranker


def test_a_ranker_of_another_package_takes_a_deadline_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "backwards-1.0.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: backwards\nVersion: 1.0\n")
    (home / "entry_points.txt").write_text("[askline.rankers]\nbackwards = backwards:Backwards\n")
    (tmp_path / "backwards.py").write_text(BACKWARDS)
    monkeypatch.syspath_prepend(str(tmp_path))

    ranker = askline.load("backwards")
    hits = ranker.rank("Which?", ["one", "two"], deadline_ms=1000)
    assert [hit.index for hit in hits] == [1, 0]
    assert [hit.index for hit in (ranker % 1 >> BM25()).rank("one?", ["one", "two"])] == [1, 0]
    assert askline.load(str(ranker)) == ranker


leaves = st.sampled_from(
    [OriginalOrder(), Jaccard(), BM25(k1=0.9), WordOverlap("reversed", 2), RandomOrder(seed=7)]
)
rankers: st.SearchStrategy[Ranker] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda ranker, keep: ranker % keep, inner, st.integers(1, 999)),
        st.lists(inner, min_size=2, max_size=3).map(lambda stages: Pipeline(tuple(stages))),
    ),
    max_leaves=5,
)


@given(rankers)
def test_what_a_ranker_prints_loads_as_that_ranker(ranker: Ranker) -> None:
    assert askline.load(str(ranker)) == ranker


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "expected the name of a ranker, got the end at character 1"),
        ("jaccard % >> bm25", "expected a whole number after '%', got '>>' at character 11"),
        ("jaccard % 1.5", "expected a whole number after '%', got '1.5' at character 11"),
        ("jaccard bm25", "expected '>>', '%' or the end, got 'bm25' at character 9"),
        ("jaccard >>", "expected the name of a ranker, got the end"),
        ("(jaccard", "expected '\\)', got the end"),
        ("wo(ties=)", "expected a value for 'ties'"),
        ("wo(ties=random", "expected '\\)', got the end"),
        ("wo(ties=random, 3)", "expected key=value"),
        ("wo('random", 'stray "\'" at 4'),
        ("jacard", "No ranker 'jacard'. Known: .*Did you mean 'jaccard'"),
        ("wo(tie=random)", "unexpected keyword argument 'tie'. Its options: ties, seed"),
        ("rr(3)", "too many positional arguments. Its options: none"),
        ("bm25(k1=much)", "k1 must be a number, got 'much'"),
        ("compare-aggregate", "missing a required argument: 'folder'"),
        ("compare-aggregate(3)", "Ranker 'compare-aggregate': expected str"),
        ("wo(seed=true)", "seed must be an integer, got True"),
        ("(" * 60 + "rr" + ")" * 60, "at most 50 open brackets"),
    ],
)
def test_load_says_what_is_wrong_and_where(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        askline.load(spec)


def test_load_takes_text_alone() -> None:
    with pytest.raises(SpecError, match="spec of a ranker must be a string, got Jaccard"):
        askline.load(askline.Jaccard())  # type: ignore[arg-type]


def test_load_passes_on_what_the_ranker_refuses() -> None:
    with pytest.raises(InputError, match="keep must be a positive integer, got 0"):
        askline.load("rr % 0")


@given(st.text(alphabet="ab%>()=,'\"1 wor+-\\", max_size=20))
def test_no_text_breaks_the_parser(spec: str) -> None:
    with contextlib.suppress(InputError):
        askline.load(spec)
