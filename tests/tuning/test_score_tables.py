from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import InputError
from askline.rankers import OriginalOrder, WordOverlapThenOrder
from askline.tuning import ScoreTable, score_set
from askline.tuning.score_tables import with_first_stage
from askline.types import Candidate, Question, QuestionSet

from ..rankers.layerwise_encoders import WordEncoder
from .random_tables import table


@pytest.mark.parametrize("light", [False, True], ids=["alone", "with a first stage"])
def test_a_table_is_read_back_from_its_file(tmp_path: Path, light: bool) -> None:
    written = table(first_stage=light)
    written.save(tmp_path / "t.npz")
    read = ScoreTable.load(tmp_path / "t.npz")
    for field in fields(ScoreTable):
        np.testing.assert_array_equal(getattr(read, field.name), getattr(written, field.name))


def test_a_table_of_some_questions() -> None:
    some = table(questions=5, size=4).take(2)
    assert (some.questions, some.sizes.tolist(), some.scores.shape) == (
        ("q0", "q1"),
        [4, 4],
        (3, 8),
    )


def test_columns_must_fit() -> None:
    whole = table(questions=5, size=4)
    with pytest.raises(InputError, match="must have 20 pairs at 3 depths, got {'labels': "):
        replace(whole, labels=whole.labels[:-1])


def test_scores_must_be_finite() -> None:
    whole = table()
    with pytest.raises(InputError, match="must be finite"):
        replace(whole, scores=whole.scores * np.nan)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.npz").write_bytes(b"no table")
    with pytest.raises(InputError, match="is not a valid score table"):
        ScoreTable.load(tmp_path / "t.npz")
    np.savez(tmp_path / "u.npz", name="other")
    with pytest.raises(InputError, match="is not a valid score table"):
        ScoreTable.load(tmp_path / "u.npz")


SET = QuestionSet(
    "letters",
    tuple(
        Question(
            f"q{number}",
            question,
            (
                Candidate("0", "x a b", is_answer=True),
                Candidate("pad:q9/1", "a x x c"),
                Candidate("2", "x x"),
            ),
        )
        for number, question in enumerate(("a b", "c", "x"))
    ),
)


def test_every_pair_has_a_score_at_every_depth() -> None:
    table = score_set(WordEncoder(), SET, model="m", pad=3)
    assert table.sizes.tolist() == [3, 3, 3]
    assert table.labels.tolist() == [True, False, False] * 3
    assert table.added.tolist() == [False, True, False] * 3
    assert table.scores[:, :3].tolist() == [
        [-0.5, -0.5, -1.5],
        [0.5, -0.5, -1.5],
        [0.5, -0.5, -1.5],
    ]
    assert table.tokens[:3].tolist() == [8, 9, 7]
    assert table.first_stage is None


def test_a_first_stage_gives_its_order_and_its_measured_cost() -> None:
    table = score_set(WordEncoder(), SET, model="m", first=WordOverlapThenOrder())
    assert table.first_stage is not None
    assert table.first_stage[:3].tolist() == [0, -1, -2]
    assert table.first_stage_layers > 0


def test_an_interrupted_scoring_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    whole = score_set(WordEncoder(), SET, model="m", path=path, first=OriginalOrder())
    ScoreTable.load(path).take(2).save(path)
    encoder = WordEncoder()
    steps: list[int] = []
    again = score_set(
        encoder,
        SET,
        model="m",
        path=path,
        first=OriginalOrder(),
        on_question=lambda: steps.append(1),
    )
    assert len(encoder.log) == 3  # one question at three depths
    assert len(steps) == 3
    np.testing.assert_array_equal(again.scores, whole.scores)
    assert ScoreTable.load(path).questions == ("q0", "q1", "q2")


@pytest.mark.parametrize(
    "other",
    [{"model": "n"}, {"pad": 5}, {"first": OriginalOrder()}],
    ids=["weights", "padding", "first stage"],
)
def test_scores_of_another_model_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    path = tmp_path / "s.npz"
    score_set(WordEncoder(), SET, model="m", path=path)
    options: dict[str, object] = {"model": "m", "path": path} | other
    with pytest.raises(InputError, match="another model or other lists"):
        score_set(WordEncoder(), SET, **options)  # type: ignore[arg-type]


def test_a_first_stage_can_be_added_to_a_table() -> None:
    table = score_set(WordEncoder(), SET, model="m")
    lit = with_first_stage(table, SET, OriginalOrder(), layers=0.4)
    assert lit.first_stage is not None
    assert (lit.first_stage.tolist(), lit.first_stage_layers) == ([0, -1, -2] * 3, 0.4)


def test_a_first_stage_needs_the_lists_of_the_table() -> None:
    table = score_set(WordEncoder(), SET, model="m")
    short = replace(SET, questions=SET.questions[:2])
    with pytest.raises(InputError, match="'q2'.*must have 3 candidates.*no such question"):
        with_first_stage(table, short, OriginalOrder(), layers=0.4)
