from __future__ import annotations

import asyncio
import pickle
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import askline
from askline import Cascade, InputError, Ranker
from askline.errors import RankerError
from askline.rankers.schedule import KeepCounts

from .layerwise_encoders import WordEncoder
from .light_folders import relational_cnn_folder

QUESTION = "Who wrote Emma?"
TEXTS = ["Emma is a novel.", "It sold well.", "Jane Austen wrote Emma in 1815."]
PACKAGE = str(Path(askline.__file__).parent)


@pytest.mark.slow
def test_documents_are_returned_as_they_were_given() -> None:
    documents = [{"body": text, "id": number} for number, text in enumerate(TEXTS)]
    best = askline.load().rank(QUESTION, iter(documents), text="body", top_k=1)[0]
    assert best.document is documents[2]
    assert (best.index, best.text) == (2, TEXTS[2])
    assert best.probability == best.score


def test_strings_and_mappings_may_be_mixed() -> None:
    hits = askline.load("jaccard").rank(QUESTION, [TEXTS[0], {"text": TEXTS[2]}])
    assert [hit.text for hit in hits] == [TEXTS[2], TEXTS[0]]


def test_lexical_rankers_have_every_method() -> None:
    ranker = askline.load("bm25")
    assert ranker.rank_many([(QUESTION, TEXTS)])[0] == ranker.rank(QUESTION, TEXTS)
    assert ranker.score(QUESTION, TEXTS).argmax() == 2
    assert ranker.read(QUESTION, TEXTS) == [None] * 3
    assert ranker.threshold is None
    assert not ranker.stops_at_deadline
    ranker.warm_up()


def test_a_listwise_ranker_refuses_to_predict() -> None:
    for spec in ("bm25", "cosinet", "cascade >> idf-overlap", "rr % 3"):
        with pytest.raises(InputError, match="so it cannot score pairs"):
            askline.load(spec).predict([(QUESTION, TEXTS[0])])


@pytest.mark.slow
def test_predict_is_the_score_at_full_depth_in_any_company() -> None:
    cascade = Cascade.load()
    last = cascade.encoder.depths[-1]
    pairs = [(question, text) for question in (QUESTION, "When?") for text in TEXTS]
    wanted = [askline.load(f"cascade(depth={last})").score(*_alone(pair))[0] for pair in pairs]
    assert askline.load().predict(pairs) == pytest.approx(wanted, abs=1e-6)
    assert cascade.predict([]).shape == (0,)


def _alone(pair: tuple[str, str]) -> tuple[str, list[str]]:
    return pair[0], [pair[1]]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("", "text"), "question must not be empty"),
        (("question",), "Pair 0 must be a question and a text"),
        (("question", 3), "Pair 0 must be a question and a text"),
        ("qt", "Pair 0 must be a question and a text"),
        (1, "Pair 0 must be a question and a text, got 1"),
    ],
)
def test_predict_refuses_wrong_pairs(pair: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        askline.load("jaccard").predict([pair])


@pytest.mark.parametrize("top_k", [0, -1, 1.5, True, "3"])
def test_top_k_must_be_a_positive_integer(top_k: Any) -> None:
    with pytest.raises(InputError, match="top_k must be a positive integer"):
        askline.load("rr").rank(QUESTION, TEXTS, top_k=top_k)


def test_integers_of_numpy_are_integers() -> None:
    assert len(askline.load("rr").rank(QUESTION, TEXTS, top_k=np.int64(1))) == 1


def test_a_ranker_is_made_of_a_function_only() -> None:
    with pytest.raises(InputError, match="Expected a function of a question and texts, got 3"):
        askline.Ranker.from_function(3)  # type: ignore[arg-type]


def count_characters(question: str, texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def share_of_letters(question: str, texts: Sequence[str]) -> list[float]:
    return [sum(map(str.isalpha, text)) / max(1, len(text)) for text in texts]


def test_a_scoring_function_is_a_ranker() -> None:
    ranker = Ranker.from_function(count_characters)
    assert str(ranker) == "count_characters"
    assert [hit.index for hit in ranker.rank(QUESTION, TEXTS)] == [2, 0, 1]
    pipeline = ranker.top(2).then(askline.load("jaccard"))
    assert str(pipeline) == "count_characters % 2 >> jaccard"
    assert pipeline.rank(QUESTION, TEXTS)[0].index == 2


def test_a_scoring_function_may_give_probabilities() -> None:
    ranker = Ranker.from_function(share_of_letters, name="letters", threshold=0.5, listwise=False)
    best = ranker.rank(QUESTION, TEXTS)[0]
    assert best.probability == best.score
    assert (ranker.threshold, (askline.load("rr") >> ranker).threshold) == (0.5, 0.5)
    assert ranker.predict([(QUESTION, "abc"), (QUESTION, "...")]).tolist() == [1, 0]
    with pytest.raises(RankerError, match="scores must be probabilities from 0 to 1, got 3 to 3"):
        Ranker.from_function(count_characters, threshold=0.5).rank(QUESTION, ["abc"])


def test_a_ranker_without_a_hook_says_what_to_implement() -> None:
    class Empty(Ranker):
        pass

    with pytest.raises(NotImplementedError, match="Empty must implement score_texts or run_batch"):
        Empty().rank(QUESTION, TEXTS)


def test_async_methods_let_the_event_loop_go_on() -> None:
    slow = Ranker.from_function(_wait_for_event)

    async def main() -> list[int]:
        waiting = asyncio.create_task(slow.arank(QUESTION, TEXTS))
        await asyncio.sleep(0.01)
        _EVENT.set()
        return [hit.index for hit in await waiting]

    assert asyncio.run(asyncio.wait_for(main(), 30)) == [0, 1, 2]


def _wait_for_event(question: str, texts: Sequence[str]) -> list[float]:
    assert _EVENT.wait(30)
    return [0.0] * len(texts)


_EVENT = threading.Event()

PICKLED = ["bm25(k1=1.2)", "cosinet", "cascade(alpha=0.3)", "cosinet % 100 >> cascade"]


@pytest.mark.slow
@pytest.mark.parametrize("spec", PICKLED)
def test_rankers_pickle_by_what_they_were_loaded_from(spec: str) -> None:
    ranker = askline.load(spec)
    packed = pickle.dumps(ranker)
    assert len(packed) < 1_000, "a pickle holds no weights"
    again = pickle.loads(packed)
    assert str(again) == spec
    assert again.rank(QUESTION, TEXTS) == ranker.rank(QUESTION, TEXTS)


def test_a_pickle_holds_the_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relational_cnn_folder(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    packed = pickle.dumps(askline.load("relational-cnn(model)"))
    monkeypatch.chdir("/")
    assert str(pickle.loads(packed)) == f"relational-cnn({str(tmp_path / 'model')!r})"


def test_a_ranker_that_was_not_loaded_cannot_be_pickled() -> None:
    with pytest.raises(TypeError, match=r"Cascade can only be pickled if it was made by load"):
        pickle.dumps(Cascade(WordEncoder(), KeepCounts((2,))))


@pytest.mark.slow
def test_a_process_pool_carries_a_ranker() -> None:
    ranker = askline.load("cosinet % 2 >> jaccard")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(ranker.rank, QUESTION, TEXTS).result() == ranker.rank(QUESTION, TEXTS)


@pytest.mark.slow
def test_rankings_have_html_for_notebooks() -> None:
    shown = askline.load().trace(QUESTION, ["<b>Emma</b>", *["It sold."] * 30])._repr_html_()
    assert "&lt;b&gt;Emma&lt;/b&gt;" in shown
    assert "<caption>and 11 more</caption>" in shown
    assert shown.count("%</td>") == 20


# Call depth


def _frames_below_rank(frame: FrameType | None) -> int:
    """Frames of askline on the stack below `rank`, without comprehensions."""
    count = -1
    while frame is not None:
        inside = frame.f_code.co_filename.startswith(PACKAGE)
        count += inside and not frame.f_code.co_name.startswith("<")
        frame = frame.f_back
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["bm25", "cosinet", "cascade", "jaccard % 3 >> cosinet % 2 >> cascade"]
)
def test_at_most_five_frames_from_rank_to_the_arithmetic(spec: str) -> None:
    """The arithmetic is numpy inside a ranker's or network's scoring, or an ONNX session."""
    found: dict[str, int] = {}

    def profile(frame: FrameType, event: str, function: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "run" and "onnxruntime" in code.co_filename:
            found.setdefault("onnx", _frames_below_rank(frame))
        elif event == "c_call" and code.co_name in ("score_texts", "scores"):
            found.setdefault(code.co_filename, _frames_below_rank(frame))

    ranker = askline.load(spec)
    sys.setprofile(profile)
    try:
        ranker.rank(QUESTION, [*TEXTS, "Emma was written by Austen."])
    finally:
        sys.setprofile(None)
    assert ("onnx" in found) == ("cascade" in spec)
    assert len(found) >= len(ranker.stages if isinstance(ranker, askline.Pipeline) else [ranker])
    assert max(found.values()) <= 5, found
