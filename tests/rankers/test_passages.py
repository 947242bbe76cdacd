"""Passages: every ranker takes them, and a cascade with a context reads them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import askline
from askline.errors import InputError, ModelError
from askline.models.cascade_config import ContextConfig
from askline.rankers import Cascade
from askline.rankers.base import Ranker
from askline.rankers.deadline import Deadline, Throughput
from askline.rankers.probability import AnswerCalibration, LogitCalibration, TwoReadings
from askline.rankers.requests import read_request
from askline.rankers.schedule import DropFraction, KeepCounts, Step
from askline.serving.stage_recorder import StageRecorder
from askline.testing import CHECKS
from askline.types import Passage

from ..engine.tiny_cascades import CANDIDATES, QUESTION, runtime_folder, tensors
from ..engine.tiny_contexts import MARKER, PASSAGES, context_config, int8_folder

TEXTS = [sentence for passage in PASSAGES for sentence in passage.sentences]
OWNER = [number for number, passage in enumerate(PASSAGES) for _ in passage.sentences]
RANKING: dict[str, Any] = {
    "keeps": {"1": 4, "2": 2},
    "calibration": {"3": {"scale": 0.5, "shift": -1.0}},
    "ask": {
        "sentences": 5,
        "keeps": {"1": 4},
        "answer": {"3": {"alone": 0.7, "retrieval": 0.3, "bias": -0.1}},
        "both": {"alone": 0.6, "context": 0.2, "in_context": 1, "retrieval": 0.3, "bias": -1},
        "threshold": 0.2,
    },
}


def _folder(path: Path, ranking: dict[str, Any]) -> Path:
    context = ContextConfig((1, 2, 3), marker=MARKER, max_length=64, max_title=12, ranking=ranking)
    of = replace(context_config(), context=context)
    return runtime_folder(path, of, tensors(of))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _folder(tmp_path_factory.mktemp("context"), RANKING)


@pytest.fixture(scope="module")
def cascade(folder: Path) -> Cascade:
    return Cascade.load(folder)


def _logits(cascade: Cascade, depth: int) -> Any:
    run = cascade.encoder.begin_passages([(QUESTION, PASSAGES)])
    return run.advance(np.arange(len(PASSAGES)), depth)


def test_the_settings_come_with_the_folder(cascade: Cascade) -> None:
    assert cascade.context is not None
    assert cascade.context.schedule == KeepCounts((1, 2, 3), (Step(1, 4), Step(2, 2)))
    assert cascade.context.calibration == {3: LogitCalibration(0.5, -1.0)}
    ask = cascade.context.ask
    assert (ask.sentences, ask.passages, ask.more, ask.threshold) == (5, 2, 3, 0.2)
    assert ask.answer == {3: AnswerCalibration(0.7, 0.3, -0.1)}
    assert ask.both == TwoReadings(0.6, 0.2, 1.0, 0.3, -1.0)
    assert cascade.alone.schedule == KeepCounts((1, 3), (Step(1, 4),))
    assert cascade.alone.context is None
    assert cascade.reads_passages


def test_options_choose_the_schedule_of_sentences_alone(folder: Path) -> None:
    for options in ({"alpha": 0.5}, {"keeps": "1:3"}, {"depth": 2}):
        cascade = Cascade.load(folder, **options)
        assert cascade.alone.schedule == cascade.schedule


def test_passages_leave_by_their_best_sentence(cascade: Cascade) -> None:
    ranking = cascade.trace(QUESTION, PASSAGES)
    left = list(range(len(PASSAGES)))
    expected_stage = {}
    for stage, (depth, keep) in enumerate(((1, 4), (2, 2), (3, 2))):
        logits = _logits(cascade, depth)
        best = {
            number: max(
                logit for logit, own in zip(logits.tolist(), OWNER, strict=True) if own == number
            )
            for number in left
        }
        expected_stage.update(dict.fromkeys(left, stage))
        left = sorted(left, key=lambda number: -best[number])[:keep]
    for hit in ranking.hits:
        assert hit.stage == expected_stage[OWNER[hit.index]]
        depth = (1, 2, 3)[hit.stage]
        assert ranking.stages[hit.stage].depth == depth
        assert ranking.stages[hit.stage].in_context
        logit = _logits(cascade, depth)[hit.index]
        assert cascade.context is not None
        wanted = cascade.context.probabilities(depth, logit)
        assert hit.probability == pytest.approx(float(wanted), abs=1e-9)
        assert hit.score == hit.probability
    keys = [(-hit.stage, -hit.score, hit.index) for hit in ranking.hits]
    assert keys == sorted(keys)


def test_the_cost_is_in_tokens_of_windows(cascade: Cascade) -> None:
    ranking = cascade.trace(QUESTION, PASSAGES)
    tokens = cascade.encoder.begin_passages([(QUESTION, PASSAGES)]).tokens
    left = [{OWNER[hit.index] for hit in ranking.hits if hit.stage >= stage} for stage in range(3)]
    assert [len(own) for own in left] == [6, 4, 2]
    assert ranking.cost is not None
    assert ranking.cost.token_layers == sum(int(tokens[list(own)].sum()) for own in left)
    assert ranking.cost.full_token_layers == 3 * tokens.sum()
    assert [stage.entered for stage in ranking.stages] == [
        sum(OWNER.count(number) for number in own) for own in left
    ]
    assert [stage.ranker for stage in ranking.stages] == [cascade.spec_at(d) for d in (1, 2, 3)]


def test_sentences_at_full_depth_have_their_span(cascade: Cascade) -> None:
    ranking = cascade.trace(QUESTION, PASSAGES)
    spans = cascade.read(QUESTION, PASSAGES)
    deep = [hit for hit in ranking.hits if hit.stage == 2]
    assert any(hit.span for hit in deep)
    for hit in ranking.hits:
        assert hit.span == (spans[hit.index] if hit.stage == 2 else None)


def test_strings_rank_as_without_a_context(folder: Path, tmp_path: Path) -> None:
    of = replace(context_config(), reader=False, adapter=None, context=None)
    weights = tensors(context_config())
    plain = runtime_folder(tmp_path, of, {name: weights[name] for name in of.shapes()})
    one, other = Cascade.load(folder), Cascade.load(plain)
    assert one.rank(QUESTION, CANDIDATES) == other.rank(QUESTION, CANDIDATES)
    assert not other.reads_passages
    assert other.rank(QUESTION, PASSAGES) == other.rank(QUESTION, TEXTS)


def test_a_pipeline_scores_what_is_left_and_reads_the_rest(folder: Path, cascade: Cascade) -> None:
    ranker = askline.load(f"wo % 6 >> cascade({str(folder)!r}, depth=3)")
    ranking = ranker.trace(QUESTION, PASSAGES)
    first = askline.load("wo").rank(QUESTION, TEXTS)
    survivors = {hit.index for hit in first[:6]}
    assert {hit.index for hit in ranking.hits[:6]} == survivors
    logits = _logits(cascade, 3)  # the windows are whole, whatever was dropped
    assert cascade.context is not None
    for hit in ranking.hits[:6]:
        wanted = float(cascade.context.probabilities(3, logits[hit.index]))
        assert hit.probability == pytest.approx(wanted, abs=1e-9)
    assert [hit.index for hit in ranking.hits[6:]] == [hit.index for hit in first[6:]]
    assert [hit.document is PASSAGES[OWNER[hit.index]] for hit in ranking.hits] == [True] * 25
    assert ranker.reads_passages


def test_several_requests_get_what_they_get_alone(cascade: Cascade) -> None:
    requests: list[tuple[str, Any]] = [
        (QUESTION, PASSAGES),
        ("Who saw it?", PASSAGES[:2]),
        (QUESTION, CANDIDATES),
        (QUESTION, []),
        ("The end?", PASSAGES[3:]),
    ]
    for (question, documents), hits in zip(requests, cascade.rank_many(requests), strict=True):
        assert hits == cascade.rank(question, documents)


def test_a_pickle_ranks_passages_alike(cascade: Cascade) -> None:
    again: Cascade = pickle.loads(pickle.dumps(cascade))
    assert again.rank(QUESTION, PASSAGES) == cascade.rank(QUESTION, PASSAGES)


@pytest.mark.parametrize(
    ("options", "schedule"),
    [
        ({"alpha": 0.5}, DropFraction((1, 2, 3), 0.5)),
        ({"alpha": 0.5, "depth": 2}, DropFraction((1, 2), 0.5)),
        ({"depth": 3}, KeepCounts((1, 2, 3))),
        ({"keeps": "1:3"}, KeepCounts((1, 2, 3), (Step(1, 4), Step(2, 2)))),
    ],
    ids=str,
)
def test_options_choose_the_schedule_of_passages(
    folder: Path, options: dict[str, Any], schedule: object
) -> None:
    context = Cascade.load(folder, **options).context
    assert context is not None
    assert context.schedule == schedule


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"keeps": {"4": 3}}, "keeps of a context must have the form"),
        ({"keeps": [1]}, "keeps of a context must have the form"),
        ({"calibration": {"1": 2}}, "calibration must have the form"),
        ({"ask": {"keeps": {}, "sentences": 0}}, "sentences must be positive, got 0"),
        ({"ask": {"sentences": 5}}, "ask must have the form"),
        ({"ask": {"keeps": {"9": 3}}}, "ask must have the form"),
        ({"ask": {"keeps": {}, "answer": {"3": {"alone": -1}}}}, "alone must be positive"),
        ({"ask": {"keeps": {}, "answer": {"3": {"weight": 1}}}}, "answer must have the form"),
        ({"ask": {"keeps": {}, "both": {"alone": 0}}}, "alone must be positive"),
        ({"ask": {"keeps": {}, "both": {"x": 1}}}, "both must have the form"),
    ],
    ids=str,
)
def test_a_broken_context_is_refused(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Cascade.load(_folder(tmp_path, entry))


class _After:
    """A clock that says no a number of times, then yes."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("batches", [0, 1, 3, 6, 9, 12, 15, 200])
def test_what_time_does_not_reach_keeps_its_place(cascade: Cascade, batches: int) -> None:
    _, request = read_request(QUESTION, PASSAGES, "text")
    (ranking,) = cascade.run_batch([request], _After(batches))
    assert sorted(hit.index for hit in ranking.hits) == list(range(len(TEXTS)))
    assert len(ranking.stages) == 3
    keys = [(-hit.stage, hit.probability is None, -hit.score) for hit in ranking.hits]
    assert keys == sorted(keys)
    unscored = [hit for hit in ranking.hits if hit.probability is None]
    assert len(unscored) == ranking.unscored
    assert [hit.index for hit in unscored] == sorted(hit.index for hit in unscored)
    assert (ranking.skipped > 0) == (batches < 200)


def test_a_deadline_begins_no_more_passages_than_fit(cascade: Cascade) -> None:
    known = replace(cascade, throughput=Throughput(1e-6))
    _, request = read_request(QUESTION, PASSAGES, "text")
    clock = Deadline(0.0008, clock=lambda: 0.0)
    (ranking,) = known.run_batch([request], clock)
    scored = {OWNER[hit.index] for hit in ranking.hits if hit.probability is not None}
    assert 0 < len(scored) < len(PASSAGES)
    assert scored == set(range(len(scored)))
    assert sorted(hit.index for hit in ranking.hits) == list(range(len(TEXTS)))
    order = list(range(len(TEXTS)))[::-1]
    known = replace(cascade, throughput=Throughput(1e-6))
    (ranking,) = known.run_batch([request._replace(order=order)], clock)
    scored = {OWNER[hit.index] for hit in ranking.hits if hit.probability is not None}
    assert max(scored) == len(PASSAGES) - 1
    assert 0 not in scored


def test_stages_are_recorded_for_explain(folder: Path) -> None:
    ranker = askline.load(f"wo % 20 >> cascade({str(folder)!r})")
    recorder = StageRecorder(ranker)
    hits = recorder.rank(QUESTION, PASSAGES)
    assert hits == ranker.rank(QUESTION, PASSAGES)
    scores = recorder.stage_scores()
    for hit in hits:
        last = scores[hit.index][-1]
        assert last.stage == hit.stage
        assert last.score == pytest.approx(hit.score)


@pytest.mark.parametrize(
    "spec", ["bm25", "wo+rr", "jaccard % 2 >> bm25", "random", "idf-overlap", "rr"]
)
def test_other_rankers_rank_the_sentences_one_by_one(spec: str) -> None:
    ranker = askline.load(spec)
    assert not ranker.reads_passages
    assert ranker.rank(QUESTION, PASSAGES) == ranker.rank(QUESTION, TEXTS)


def test_a_passage_among_strings_is_refused_with_its_place() -> None:
    ranker = askline.load("bm25")
    with pytest.raises(InputError, match="Document 1 must be a Passage like the others, got str"):
        ranker.rank(QUESTION, [PASSAGES[0], "It appeared in 1815."])
    with pytest.raises(InputError, match="The title of passage 0 must be a string, got int"):
        ranker.rank(QUESTION, [Passage(["a"], 3)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got one Passage. Put it in a list"):
        ranker.rank(QUESTION, PASSAGES[0])  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_int8_context_keeps_the_contract(
    tmp_path_factory: pytest.TempPathFactory, check: Callable[[Ranker], None]
) -> None:
    folder = int8_folder(tmp_path_factory.mktemp("int8"), context_config())
    check(Cascade.load(folder, alpha=0.5))
