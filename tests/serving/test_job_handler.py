from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from askline import CorpusError, load
from askline.corpus import finish_shards, write_shard
from askline.errors import SpecError
from askline.rankers.base import Cut, Pipeline
from askline.serving.corpus_schemas import AskResponse
from askline.serving.job_handler import (
    AllowedRankers,
    JobHandler,
    count_tokens,
)
from askline.serving.messages import (
    MAX_SHARED_CANDIDATES,
    MAX_SHARED_CHARACTERS,
    AnyJob,
    AskJob,
    JobFailure,
    JobRequest,
    ListJob,
    RankJob,
    RankResult,
    WorkerConfig,
)

from .misbehaving_rankers import Batching

TEXTS = ["Emma is a novel.", "Jane Austen wrote Emma."]


@pytest.fixture
def handler() -> JobHandler:
    """A handler whose ranker fails for a batch that contains the question `break`."""
    rankers = AllowedRankers(["bm25"])
    rankers.default = Batching()
    return JobHandler(rankers, None, max_tokens=100, batch_size=8)


def _request(job: AnyJob, number: int = 1, deadline: float | None = None) -> JobRequest:
    return JobRequest(number, job, deadline, is_write=False)


def test_a_failed_batch_is_logged_and_ranked_one_by_one(
    handler: JobHandler, caplog: pytest.LogCaptureFixture
) -> None:
    questions = ["Who wrote Emma?", "break", "What is Emma?"]
    requests = [_request(RankJob(question, TEXTS, None)) for question in questions]
    with caplog.at_level(logging.ERROR, "askline.serving.job_handler"):
        outcomes = handler.handle(requests)
    assert [isinstance(outcome, RankResult) for outcome in outcomes] == [True] * 3
    (record,) = caplog.records
    assert record.getMessage() == "A batch of 3 requests failed. Ranking them one at a time."
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_a_batch_gives_the_results_of_single_requests(
    handler: JobHandler, caplog: pytest.LogCaptureFixture
) -> None:
    requests = [_request(RankJob(text, TEXTS, None)) for text in ("Who wrote Emma?", "novel")]
    together = handler.handle(requests)
    assert together == [outcome for request in requests for outcome in handler.handle([request])]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (_request(RankJob("a", TEXTS, None)), True),
        (_request(RankJob("a", TEXTS, "rerank-v3.5")), True),
        (_request(RankJob("a", TEXTS, "bm25")), False),
        (_request(RankJob("a", TEXTS, None), deadline=1.0), False),
        (_request(RankJob("a", ["b"] * (MAX_SHARED_CANDIDATES + 1), None)), False),
        (_request(RankJob("a", ["b" * (MAX_SHARED_CHARACTERS + 1)], None)), False),
        (_request(ListJob("", 1)), False),
    ],
    ids=["default", "unknown model", "other ranker", "deadline", "many", "long", "not a rank job"],
)
def test_which_requests_share_a_batch(
    handler: JobHandler, request_: JobRequest, expected: bool
) -> None:
    assert handler.can_share_batch(request_) is expected


def test_errors_become_failures(handler: JobHandler) -> None:
    (many,) = handler.handle([_request(RankJob("a", ["word " * 200], None))])
    assert isinstance(many, JobFailure)
    assert (many.kind, many.status) == ("input", 413)
    (missing,) = handler.handle([_request(ListJob("", 1))])
    assert isinstance(missing, JobFailure)
    assert (missing.kind, missing.status) == ("input", 404)


def test_a_ranker_without_batches_gets_single_requests() -> None:
    config = WorkerConfig(["bm25"], None, None, max_tokens=100, batch_size=8)
    description = JobHandler.load(config).describe()
    assert description.batch_size == 1
    assert [model.id for model in description.models] == ["bm25"]
    assert "jaccard" in description.rankers


def test_the_span_reader_is_loaded_at_the_start() -> None:
    handler = JobHandler.load(WorkerConfig(["cascade"], None, None, max_tokens=100, batch_size=8))
    encoder = handler._rankers.default.encoder  # type: ignore[attr-defined]
    ready = encoder.parts_ready
    handler._rankers.default.read("Who wrote Emma?", TEXTS)
    assert encoder.parts_ready == ready


@pytest.mark.parametrize("spec", ["cascade", "cosinet % 10 >> cascade", "cascade % 3"])
def test_a_cascade_is_counted_by_its_tokenizer(spec: str) -> None:
    texts = ["Who wrote Emma?", "..."]
    assert count_tokens(load(spec), texts, limit=100) == 4 + 3


@pytest.mark.parametrize("spec", ["bm25", "cosinet", "jaccard % 20 >> bm25"])
def test_other_rankers_are_counted_by_words_and_punctuation(spec: str) -> None:
    texts = ["Don't ask: who wrote Emma?", "...", "日本"]
    assert count_tokens(load(spec), texts, limit=100) == 6 + 3 + 3 + 2


@pytest.mark.parametrize("spec", ["bm25", "cascade"])
def test_counting_ends_soon_after_the_limit(spec: str) -> None:
    assert 10 < count_tokens(load(spec), ["a b " * 8] * 1_000, limit=10) < 100


def test_answers_from_part_of_the_shards_say_so(tmp_path: Path) -> None:
    texts = [("a", "Jane Austen wrote Emma."), ("b", "Emma is a novel of Highbury.")]
    infos = [write_shard(tmp_path, at, [text]) for at, text in enumerate(texts)]
    finish_shards(tmp_path, infos)
    shutil.rmtree(tmp_path / infos[1].name)
    config = WorkerConfig(["bm25"], str(tmp_path), None, max_tokens=100, batch_size=8)
    with pytest.raises(CorpusError, match=infos[1].name):
        JobHandler.load(config)
    handler = JobHandler.load(replace(config, allow_partial=True))
    job = AskJob("Who wrote Emma?", None, True, None, 3, 10, False)
    (reply,) = handler.handle([_request(job)])
    assert isinstance(reply, AskResponse)
    assert [each.source.document for each in reply.answers] == ["a"]
    assert [each.name for each in reply.missing_shards] == [infos[1].name]


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
