from __future__ import annotations

from pathlib import Path

import pytest

from askline.errors import SpecError
from askline.rankers.base import Cut, Pipeline
from askline.serving.allowed_rankers import AllowedRankers


@pytest.fixture(scope="module")
def rankers() -> AllowedRankers:
    return AllowedRankers(["bm25(k1=2.0)", "jaccard"])


def test_models_of_the_service_by_spec(rankers: AllowedRankers) -> None:
    assert str(rankers.find(None)) == "bm25(k1=2.0)"
    assert rankers.find("bm25(k1=2.0)") is rankers.find(None)


def test_pipelines_of_built_in_rankers(rankers: AllowedRankers) -> None:
    ranker = rankers.find("jaccard%20>>bm25")
    assert str(ranker) == "jaccard % 20 >> bm25"
    assert rankers.find("jaccard % 20 >>  bm25") == ranker


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
def test_other_specs_are_refused(rankers: AllowedRankers, spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message.replace("(", r"\(")):
        rankers.find(spec)
    assert rankers.find_or_default(spec) is rankers.find(None)


def test_names_never_reach_the_file_system(
    rankers: AllowedRankers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bm25").mkdir()
    monkeypatch.chdir(tmp_path)
    assert str(rankers.find("bm25")) == "bm25"


def test_pipelines_share_loaded_rankers(rankers: AllowedRankers) -> None:
    one, other = (rankers.find(f"cosinet % {keep} >> bm25") for keep in (5, 20))
    assert isinstance(one, Pipeline)
    assert isinstance(other, Pipeline)
    cuts = [pipeline.stages[0] for pipeline in (one, other)]
    assert len({id(cut.ranker) for cut in cuts if isinstance(cut, Cut)}) == 1
