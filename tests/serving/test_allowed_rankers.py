from __future__ import annotations

from pathlib import Path

import pytest

from askline.errors import SpecError
from askline.rankers.pipeline import Cut, Pipeline
from askline.serving.allowed_rankers import Roster


@pytest.fixture(scope="module")
def roster() -> Roster:
    return Roster(["bm25(k1=2.0)", "jaccard"])


def test_own_models_by_their_text(roster: Roster) -> None:
    assert str(roster.ranker(None)) == "bm25(k1=2.0)"
    assert roster.ranker("bm25(k1=2.0)") is roster.ranker(None)


def test_sequences_of_what_is_built_in(roster: Roster) -> None:
    ranker = roster.ranker("jaccard%20>>bm25")
    assert str(ranker) == "jaccard % 20 >> bm25"
    assert roster.ranker("jaccard % 20 >>  bm25") == ranker


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cosinet('/etc')", "without options"),
        ("cosinet(folder=x)", "without options"),
        ("bm25(k1=3)", "without options"),
        ("compare-aggregate", "No ranker 'compare-aggregate'"),
        ("jacard", "Did you mean 'jaccard'"),
        ("", "without options"),
        ("bm25 >>", "without options"),
        ("bm25 % 0", "without options"),
        (" >> ".join(["bm25"] * 9), "at most 8"),
        ("b" * 300, "at most 8"),
        ("../x", "without options"),
        ("jaccard\x00", "without options"),
    ],
)
def test_nothing_else_may_be_named(roster: Roster, spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("(", r"\(")):
        roster.ranker(spec)
    assert roster.served(spec) is roster.ranker(None)


def test_no_name_reaches_the_file_system(
    roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bm25").mkdir()
    monkeypatch.chdir(tmp_path)
    assert str(roster.ranker("bm25")) == "bm25"


def test_sequences_share_what_is_loaded(roster: Roster) -> None:
    one, other = (roster.ranker(f"cosinet % {keep} >> bm25") for keep in (5, 20))
    assert isinstance(one, Pipeline)
    assert isinstance(other, Pipeline)
    cuts = [pipeline.stages[0] for pipeline in (one, other)]
    assert len({id(cut.ranker) for cut in cuts if isinstance(cut, Cut)}) == 1
