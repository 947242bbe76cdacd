"""Score tables: what is saved, what is read again, and the candidate lists taken from them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from askline.errors import InputError
from askline.rankers import OriginalOrder, WordOverlapThenOrder
from askline.tuning import ScoreTable, score_set
from askline.tuning.score_tables import concatenated, make_lists, ranks_of, with_first_stage
from askline.types import Candidate, Question, QuestionSet
from tests.rankers.layerwise_encoders import WordEncoder
from tests.tuning.random_tables import table


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


def test_ranks_are_best_first_and_ties_keep_their_order() -> None:
    assert ranks_of(np.array([[1.0, 3.0, 3.0, 2.0]])).tolist() == [[3, 0, 1, 2]]


def test_whole_lists_stay_as_they_are() -> None:
    drawn = table(questions=3, size=5)
    lists = make_lists([drawn], 5)
    assert lists.labels.tolist() == drawn.labels.reshape(3, 5).tolist()
    assert lists.tokens.tolist() == drawn.tokens.reshape(3, 5).tolist()
    order = np.argsort(-drawn.scores.reshape(3, 3, 5), axis=2)
    assert (np.argsort(lists.ranks, axis=2) == order).all()


def test_shorter_lists_keep_answers_and_own_candidates() -> None:
    drawn = table(questions=20, size=12)
    lists = make_lists([drawn], 4)
    assert (lists.labels.sum(axis=1) == 2).all()
    own = (~drawn.added).reshape(20, 12).sum(axis=1)
    tokens = [set(row) for row in (drawn.tokens * ~drawn.added).reshape(20, 12).tolist()]
    for row in np.flatnonzero(own >= 4).tolist():
        assert set(lists.tokens[row].tolist()) <= tokens[row]


def test_questions_with_too_few_candidates_are_left_out() -> None:
    assert len(make_lists([table(3, 5), table(4, 8)], 6)) == 4
    with pytest.raises(InputError, match="No question of the dev sets has 9 candidates"):
        make_lists([table(3, 5), table(4, 8)], 9)


def test_a_set_weighs_as_the_square_root_of_its_size() -> None:
    weights = make_lists([table(4, 5), table(16, 5)], 5).weights
    assert weights.sum() == pytest.approx(1)
    assert weights[:4].sum() / weights[4:].sum() == pytest.approx(0.5)


def test_a_question_is_in_the_same_fold_at_every_length() -> None:
    uneven = table(4, 6)
    uneven = replace(uneven, sizes=np.array([3, 9, 6, 6]))
    assert make_lists([uneven], 6, folds=3).folds.tolist() == [1, 2, 0]


def test_first_stage_ranks_are_for_whole_lists_only() -> None:
    drawn = table(3, 6, first_stage=True)
    assert make_lists([drawn], 5).first_stage is None
    whole = make_lists([drawn], 6)
    cut = whole.after_first_stage(2)
    best = np.sort(np.argsort(-drawn.first_stage.reshape(3, 6), axis=1)[:, :2], axis=1)  # type: ignore[union-attr]
    assert cut.tokens.tolist() == np.take_along_axis(whole.tokens, best, axis=1).tolist()
    assert sorted(cut.ranks[0, 0].tolist()) == [0, 1]
    with pytest.raises(InputError, match="no scores of a first stage"):
        make_lists([drawn], 5).after_first_stage(2)


def test_concatenated_lists_have_the_same_weight() -> None:
    both = concatenated([make_lists([table(3, 5)], 5), make_lists([table(9, 5)], 5)])
    assert both.weights[:3].sum() == pytest.approx(0.5)
    assert len(both) == 12


def test_lists_record_their_set() -> None:
    first, second = make_lists([table(2, 5), table(3, 5)], 5), make_lists([table(1, 5)], 5)
    assert first.sets.tolist() == [0, 0, 1, 1, 1]
    assert concatenated([first, second, first]).sets.tolist() == [0, 0, 1, 1, 1, 2, 3, 3, 4, 4, 4]
