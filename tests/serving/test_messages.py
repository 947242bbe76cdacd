from __future__ import annotations

import io

import pytest

from askline.errors import CorpusError, InputError, ModelError
from askline.serving.common_schemas import ModelSchema
from askline.serving.corpus_jobs import NotFoundError
from askline.serving.corpus_schemas import NamedText
from askline.serving.messages import (
    AddJob,
    AskJob,
    CancelRequest,
    JobFailure,
    JobReply,
    JobRequest,
    ListJob,
    MessageError,
    RankJob,
    RankResult,
    RemoveJob,
    ScoreJob,
    ShowJob,
    WorkerConfig,
    WorkerReady,
    decode,
    decode_request,
    decode_start,
    encode,
    read_message,
)

JOBS = [
    RankJob("a\x00ü🜚", ["\ud800", "x" * 100_000], None),
    ScoreJob([("a", "b"), ("c", "d")], "bm25"),
    AskJob("a", [NamedText(id="1", text="b")], True, "bm25", 3, 100, False),
    AskJob("a", None, False, None, 3, 100, True, 0.25),
    AddJob([NamedText(id="1", text="b")]),
    RemoveJob("a"),
    ListJob("", 10),
    ShowJob("a", 0, 10),
]


def _sent(message: object) -> object:
    return read_message(io.BytesIO(encode(message)))


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.task)
def test_a_job_arrives_as_it_was_sent(job: RankJob) -> None:
    request = JobRequest(1, job, 12.5, is_write=True)
    assert decode_request(_sent(request)) == request


def test_other_messages_arrive_as_they_were_sent() -> None:
    config = WorkerConfig(["bm25"], None, "opensearch://h/i", 100, 8)
    assert decode(WorkerConfig, _sent(config)) == config
    assert decode_request(_sent(CancelRequest(3))) == CancelRequest(3)
    ready = WorkerReady([ModelSchema(id="bm25", threshold=None)], ["bm25"], 1)
    assert decode_start(_sent(ready)) == ready
    failure = JobFailure("input", "No.", 404)
    assert decode_start(_sent(failure)) == failure


def test_the_result_of_a_reply_is_read_by_its_job() -> None:
    job = RankJob("a", ["b"], None)
    result = RankResult([0], [0.5], [0.0], 2, "bm25")
    reply = decode(JobReply, _sent(JobReply(1, 2.5, 1, result=result)))
    assert job.read_result(reply.result) == result
    with pytest.raises(MessageError, match=r"Expected a ScoreResult message, got"):
        ScoreJob([], None).read_result("nothing")


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"type": "job", "number": 1},
        {"type": "cancel", "number": "one"},
        {"type": "job", "number": 1, "job": {"task": "cook"}, "deadline": None, "is_write": False},
    ],
    ids=["list", "empty", "no job", "no number", "unknown task"],
)
def test_invalid_requests_are_refused(value: object) -> None:
    with pytest.raises(MessageError, match="Expected a request message"):
        decode_request(value)


def test_errors_do_not_repeat_the_texts() -> None:
    with pytest.raises(MessageError) as caught:
        decode(WorkerConfig, {"models": "a secret", "index": 1})
    assert "secret" not in str(caught.value)


def test_an_incomplete_message_is_the_end_of_the_stream() -> None:
    whole = encode(CancelRequest(1))
    for length in range(len(whole)):
        assert read_message(io.BytesIO(whole[:length])) is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InputError("No."), JobFailure("input", "No.")),
        (ModelError("No model."), JobFailure("input", "No model.")),
        (NotFoundError("None."), JobFailure("input", "None.", 404)),
        (CorpusError("Busy."), JobFailure("corpus", "Busy.")),
        (KeyError("x"), JobFailure("internal", "KeyError: 'x'")),
    ],
)
def test_failures_describe_the_error(error: Exception, expected: JobFailure) -> None:
    assert JobFailure.from_error(error) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (None, True),
        ("cosinet % 20 >> cascade", True),
        ("rerank-v3.5", True),
        ("BAAI/bge-reranker-v2-m3", True),
        ("wo", False),
        ("./tuned", False),
        ("bm25%9>>cascade", False),
    ],
)
def test_a_model_that_may_name_another_ranker_shares_no_batch(
    model: str | None, expected: bool
) -> None:
    specs = ["cosinet % 20 >> cascade", "./tuned"]
    models = [ModelSchema(id=spec, threshold=None) for spec in specs]
    ready = WorkerReady(models, ["bm25", "cascade", "wo"], 8)
    assert ready.can_share_batch(RankJob("a", ["b"], model)) is expected
    assert not ready.can_share_batch(ListJob("", 1))
    assert not WorkerReady(models, [], 1).can_share_batch(RankJob("a", ["b"], model))
