from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from askline.engine import encoder as run_module
from askline.engine.encoder import OnnxEncoder
from askline.engine.protocols import StagedEncoder, StagedRun
from askline.errors import InputError
from askline.models.cascade_config import Head

from .tiny_cascades import CANDIDATES, QUESTION, encoder, layout, logits, tensors

LONG = " ".join(f"she wrote novel {number}," for number in range(400))
ALL = np.arange(len(CANDIDATES))


def _descend(
    of: OnnxEncoder, candidates: list[str]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """(depths, candidates)"""
    run, rows = of.begin(QUESTION, candidates), np.arange(len(candidates))
    return np.stack([run.advance(rows, depth) for depth in of.depths])


@pytest.fixture
def tiny(tmp_path: Path) -> OnnxEncoder:
    return encoder(tmp_path / "tiny", layout())


def test_it_is_what_a_cascade_asks_for(tiny: OnnxEncoder) -> None:
    assert isinstance(tiny, StagedEncoder)
    assert isinstance(tiny.begin(QUESTION, CANDIDATES), StagedRun)
    assert (tiny.depths, tiny.layers) == ((1, 3), 3)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_logits_are_those_of_the_network(tmp_path: Path, head: Head) -> None:
    of = layout(head)
    tiny = encoder(tmp_path / "tiny", of)
    found = _descend(tiny, CANDIDATES)
    for row, candidate in enumerate(CANDIDATES):
        asked = [tiny.tokeniser.first, *tiny.tokeniser.numbers(QUESTION), tiny.tokeniser.separator]
        said = [*tiny.tokeniser.numbers(candidate), tiny.tokeniser.separator]
        kinds = [0] * len(asked) + [1] * len(said)
        wanted = logits(of, tensors(of), [*asked, *said][:64], kinds[:64])
        if len(kinds) <= 64:
            assert found[:, row] == pytest.approx([wanted[1], wanted[3]], abs=1e-4)


def test_who_else_is_there_changes_nothing(tiny: OnnxEncoder) -> None:
    together = _descend(tiny, CANDIDATES)
    alone = [_descend(tiny, [candidate])[:, 0] for candidate in CANDIDATES]
    assert np.abs(together - np.stack(alone, axis=1)).max() < 1e-5


def test_going_on_with_some_is_the_same_as_going_on_with_all(tiny: OnnxEncoder) -> None:
    whole = _descend(tiny, CANDIDATES)
    run = tiny.begin(QUESTION, CANDIDATES)
    run.advance(ALL, 1)
    some = np.array([6, 0, 5])
    assert np.abs(run.advance(some, 3) - whole[1, some]).max() < 1e-5
    straight = tiny.begin(QUESTION, CANDIDATES).advance(some, 3)
    assert np.abs(straight - whole[1, some]).max() < 1e-5


def test_states_that_there_is_no_room_for_are_made_again(
    tiny: OnnxEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _descend(tiny, CANDIDATES)
    monkeypatch.setattr(run_module, "_HELD", 60)
    run = tiny.begin(QUESTION, CANDIDATES)
    run.advance(ALL, 1)
    assert 0 < sum(states is not None for states in run._states) < len(CANDIDATES)
    assert np.abs(run.advance(ALL, 3) - whole[1]).max() < 1e-5
    assert [span is None for span in run.read(ALL)] == [not text for text in CANDIDATES]


def test_two_runs_give_the_same_bytes(tiny: OnnxEncoder) -> None:
    assert _descend(tiny, CANDIDATES).tobytes() == _descend(tiny, CANDIDATES).tobytes()


def test_eight_threads_at_once_give_what_one_gives(tmp_path: Path) -> None:
    one = _descend(encoder(tmp_path / "one", layout(), threads=1), CANDIDATES)
    shared = encoder(tmp_path / "many", layout(), threads=3)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: _descend(shared, CANDIDATES), range(24)))
    for each in found:
        assert np.abs(each - one).max() < 1e-5


def test_a_long_candidate_has_the_score_of_its_best_window(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, ["No.", LONG])
    found = run.advance(np.array([0, 1]), 3)
    assert np.isfinite(found).all()
    assert run.tokens[1] > len(tiny.tokeniser.numbers(LONG))
    places = tiny.tokeniser.pieces(LONG)
    room = 64 - 3 - len(tiny.tokeniser.numbers(QUESTION))
    parts = [LONG[places[at][1] : places[at + room - 1][2]] for at in run._windows.start[1:]]
    assert found[1] == pytest.approx(float(_descend(tiny, parts)[1].max()), abs=1e-4)


def test_stop_leaves_the_rest_without_a_score(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, CANDIDATES)
    assert np.isnan(run.advance(ALL, 1, stop=lambda: True)).all()
    asked = iter([False, False, *[True] * 99])
    some = tiny.begin(QUESTION, CANDIDATES).advance(ALL, 1, stop=lambda: next(asked))
    assert 0 < np.isnan(some).sum() < len(CANDIDATES)


def test_a_depth_without_a_classifier_is_refused(tiny: OnnxEncoder) -> None:
    with pytest.raises(InputError, match="depth must be one of 1, 3, got 2"):
        tiny.begin(QUESTION, CANDIDATES).advance(ALL, 2)


@pytest.mark.parametrize("head", ["first", "mean", "mixed"])
def test_reading_points_inside_the_candidate(tmp_path: Path, head: Head) -> None:
    tiny = encoder(tmp_path / "tiny", layout(head))
    texts = [*CANDIDATES, LONG]
    rows = np.arange(len(texts))
    run = tiny.begin(QUESTION, texts)
    run.advance(rows, 3)
    for text, span in zip(texts, run.read(rows), strict=True):
        if not text:
            assert span is None
            continue
        assert span is not None
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end].strip() == text[span.start : span.end]
        assert span.score < 0.0
        assert span.no_answer < 0.0


def test_an_encoder_without_a_reader_reads_nothing(tmp_path: Path) -> None:
    run = encoder(tmp_path / "tiny", layout(reader=False)).begin(QUESTION, CANDIDATES)
    run.advance(ALL, 3)
    assert run.read(ALL) == [None] * len(CANDIDATES)


def test_no_candidates_no_scores(tiny: OnnxEncoder) -> None:
    run = tiny.begin(QUESTION, [])
    assert run.advance(np.zeros(0, np.int64), 1).tolist() == []
    assert run.read(np.zeros(0, np.int64)) == []
    assert run.tokens.tolist() == []


def test_only_what_is_asked_for_is_made_ready(tiny: OnnxEncoder) -> None:
    tiny.begin(QUESTION, CANDIDATES).advance(ALL, 1)
    assert sorted(tiny._ready) == [("embedder", 0, 0), ("pooler", 1, 1), ("scorer", 1, 1)]
