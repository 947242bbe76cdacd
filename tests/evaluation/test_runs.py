from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.errors import DataError, InputError, RankerError, UnknownNameError
from askline.evaluation import (
    RankedList,
    Run,
    make_qrels,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from askline.evaluation.runs import TieRule
from askline.types import Candidate, Hit, Question, QuestionSet

from .conftest import make_question


def test_run_keeps_the_order_of_the_hits_not_of_the_scores() -> None:
    question = make_question("q", [0, 1, 0])
    run = Run.from_hits("hand", [(question, [Hit(2, 0.5), Hit(0, 0.5), Hit(1, 9.0, stage=1)])])
    assert run == Run("hand", {"q": RankedList(("q-2", "q-0", "q-1"), (0.5, 0.5, 9.0))})


def test_run_accepts_a_question_without_candidates() -> None:
    assert Run.from_hits("hand", [(make_question("q", []), [])]).rankings["q"] == RankedList((), ())


@pytest.mark.parametrize(
    ("indexes", "message"),
    [
        ([0, 1], "each of the 3 candidates once, got 2 hits; missing: 2; repeated: none"),
        ([0, 1, 1], "missing: 2; repeated: 1; out of range: none"),
        ([0, 1, 2, 2], "got 4 hits; missing: none; repeated: 2"),
        ([0, 1, -1], "missing: 2; repeated: none; out of range: -1"),
        ([], "missing: 0, 1, 2;"),
    ],
    ids=["lost", "swapped for another", "doubled", "negative", "empty"],
)
def test_run_refuses_missing_and_repeated_candidates(indexes: list[int], message: str) -> None:
    question = make_question("q", [0, 1, 0])
    with pytest.raises(RankerError, match=f"Question 'q': .*{message}"):
        RankedList.from_hits(question, [Hit(index, 0.0) for index in indexes])


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_run_refuses_scores_that_are_not_finite(score: float) -> None:
    with pytest.raises(RankerError, match="Question 'q': scores must be finite"):
        RankedList.from_hits(make_question("q", [1]), [Hit(0, score)])
    with pytest.raises(InputError, match="Scores must be finite"):
        RankedList(("a",), (score,))


def test_run_refuses_repeated_candidate_ids() -> None:
    twins = Question("q", "?", (Candidate("same", "One."), Candidate("same", "Two.")))
    with pytest.raises(InputError, match="unique within a question, got 'same' twice"):
        RankedList.from_hits(twins, [Hit(0, 1.0), Hit(1, 0.0)])


def test_run_refuses_repeated_question_ids() -> None:
    question = make_question("q", [1])
    with pytest.raises(InputError, match="unique within a run, got 'q' twice"):
        Run.from_hits("hand", [(question, [Hit(0, 1.0)])] * 2)


def test_ranked_list_needs_one_score_per_candidate() -> None:
    with pytest.raises(InputError, match="got 2 candidates and 1 scores"):
        RankedList(("a", "b"), (1.0,))


def test_make_qrels_has_every_candidate(tiny: QuestionSet) -> None:
    qrels = make_qrels(tiny)
    assert list(qrels) == ["a", "b", "c", "d"]
    assert qrels["b"] == {"b-0": 0, "b-1": 1, "b-2": 0}


RUN_TEXT = """\
q1 Q0 d1 3 1.0 hand
q1 Q0 d3 2 1.0 hand
q1 Q0 d2 1 1.0 hand

q2\tQ0\td1\t1\t-2.5e-1\thand
q1 Q0 d9 4 7 hand
"""


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "hand.run"
    path.write_text(RUN_TEXT, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("ties", "order"),
    [("docno", ("d9", "d3", "d2", "d1")), ("rank", ("d9", "d2", "d3", "d1"))],
)
def test_read_run_sorts_by_score_and_then_by_the_tie_rule(
    run_file: Path, ties: TieRule, order: tuple[str, ...]
) -> None:
    run = read_run(run_file, ties=ties)
    assert run.name == "hand"
    assert run.rankings["q1"] == RankedList(order, (7.0, 1.0, 1.0, 1.0))
    assert run.rankings["q2"] == RankedList(("d1",), (-0.25,))


def test_read_run_by_rank_falls_back_to_file_order(tmp_path: Path) -> None:
    path = tmp_path / "flat.run"
    path.write_text("q Q0 b 0 1 x\nq Q0 a 0 1 x\nq Q0 c 0 1 x\n", encoding="utf-8")
    assert read_run(path, ties="rank").rankings["q"].ids == ("b", "a", "c")


def test_read_run_by_docno_compares_scores_as_float32(tmp_path: Path) -> None:
    path = tmp_path / "close.run"
    path.write_text("q Q0 a 1 1.000000001 x\nq Q0 b 2 1.0 x\n", encoding="utf-8")
    assert read_run(path, ties="docno").rankings["q"].ids == ("b", "a")
    assert read_run(path, ties="rank").rankings["q"].ids == ("a", "b")


def test_read_run_accepts_scores_beyond_float32(tmp_path: Path) -> None:
    path = tmp_path / "large.run"
    path.write_text("q Q0 a 1 1e300 x\nq Q0 b 2 1e299 x\n", encoding="utf-8")
    assert read_run(path, ties="docno").rankings["q"].ids == ("b", "a")


def test_read_run_refuses_an_unknown_tie_rule(run_file: Path) -> None:
    with pytest.raises(UnknownNameError, match="No tie rule 'random'. Known: docno, rank"):
        read_run(run_file, ties=cast(TieRule, "random"))


def test_read_run_reports_every_bad_row_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.run"
    rows = [
        b"q Q0 a 1 0.5 x",
        b"q Q0 b 2 0.4",
        b"q Q0 a 3 0.3 x",
        b"q Q0 c first 0.2 x",
        b"q Q0 d 5 nan x",
        b"q Q0 e 6 1e999 x",
        b"q Q0 \xff 7 0.1 x",
        b"q Q0 f 8 " + b"9" * 100 + b"z x",
    ]
    path.write_bytes(b"\n".join(rows))
    with pytest.raises(DataError) as caught:
        read_run(path, ties="docno")
    assert [(problem.line, problem.message) for problem in caught.value.problems] == [
        (2, "expected 6 columns (question Q0 candidate rank score tag), got 5."),
        (3, "candidate 'a' occurs twice for question 'q'. Keep one row."),
        (4, "rank must be an integer, got 'first'."),
        (5, "score must be a finite number, got 'nan'."),
        (6, "score must be a finite number, got '1e999'."),
        (7, "not UTF-8. Convert the file to UTF-8."),
        (8, f"score must be a finite number, got '{'9' * 39}…'."),
    ]
    assert str(caught.value).startswith(f"{path}:2: expected 6 columns")


def test_read_qrels_reads_grades_and_reports_every_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "hand.qrels"
    path.write_bytes(b"\xef\xbb\xbfq1 0 a 1\r\nq1 0 b -1\r\nq2 0 a 2\r\n")
    assert read_qrels(path) == {"q1": {"a": 1, "b": -1}, "q2": {"a": 2}}
    path.write_text("q1 0 a yes\nq1 0 b 1\nq1 0 b 1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"(?s):1: relevance must be.*:3: candidate 'b' occurs"):
        read_qrels(path)


@pytest.mark.parametrize("text", ["", "\n \n"], ids=["empty", "blank"])
def test_reading_refuses_a_file_without_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="expected rows of question 0 candidate relevance, got no"):
        read_qrels(path)


def test_reading_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.run: cannot be read: No such file"):
        read_run(tmp_path / "absent.run", ties="docno")


def test_write_run_keeps_strictly_falling_scores_or_counts_down(tmp_path: Path) -> None:
    rankings = {
        "falls": RankedList(("a", "b"), (0.75, 0.1)),
        "ties": RankedList(("a", "b"), (0.5, 0.5)),
        "ties as float32": RankedList(("a", "b"), (1.000000001, 1.0)),
        "rises": RankedList(("a", "b", "c"), (0.5, 7.0, 6.0)),
        "too large": RankedList(("a",), (1e300,)),
    }
    path = tmp_path / "out.run"
    write_run(Run("bm25 % 2 >> wo", {k.replace(" ", "-"): v for k, v in rankings.items()}), path)
    assert path.read_text(encoding="utf-8").splitlines() == [
        "falls Q0 a 1 0.75 bm25_%_2_>>_wo",
        "falls Q0 b 2 0.1 bm25_%_2_>>_wo",
        "ties Q0 a 1 2.0 bm25_%_2_>>_wo",
        "ties Q0 b 2 1.0 bm25_%_2_>>_wo",
        "ties-as-float32 Q0 a 1 2.0 bm25_%_2_>>_wo",
        "ties-as-float32 Q0 b 2 1.0 bm25_%_2_>>_wo",
        "rises Q0 a 1 3.0 bm25_%_2_>>_wo",
        "rises Q0 b 2 2.0 bm25_%_2_>>_wo",
        "rises Q0 c 3 1.0 bm25_%_2_>>_wo",
        "too-large Q0 a 1 1.0 bm25_%_2_>>_wo",
    ]


@pytest.mark.parametrize("bad", ["a b", "a\tb", "a\n", "", "\0", "\ud800"], ids=ascii)
def test_writing_refuses_invalid_ids_and_keeps_the_old_file(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "old"
    path.write_text("old", encoding="utf-8")
    for run in (
        Run("x", {"q": RankedList(("good", bad), (1.0, 0.0))}),
        Run("x", {bad: RankedList(("good",), (1.0,))}),
    ):
        with pytest.raises(InputError, match="ids must not be empty or contain any; got .*Rename"):
            write_run(run, path)
    with pytest.raises(InputError, match="Rename these ids"):
        write_qrels({"q": {bad: 1}}, path)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_counts_the_invalid_ids_it_does_not_show(tmp_path: Path) -> None:
    qrels = {"q": {f"a {number}": 1 for number in range(8)}}
    with pytest.raises(InputError, match="'a 0', 'a 1', 'a 2', 'a 3', 'a 4' and 3 more"):
        write_qrels(qrels, tmp_path / "out")


def test_write_qrels_refuses_a_question_without_candidates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="got none for 'q2'. Leave these questions out"):
        write_qrels({"q1": {"a": 1}, "q2": {}}, tmp_path / "out.qrels")


def test_writing_is_atomic(tmp_path: Path) -> None:
    broken = RankedList(("a", "b"), cast("tuple[float, ...]", (1.0, 0.0)))
    object.__setattr__(broken, "ids", ("a",))
    with pytest.raises(ValueError, match="zip"):
        write_run(Run("x", {"q": broken}), tmp_path / "out.run")
    assert list(tmp_path.iterdir()) == []


# Everything but what the module says it refuses; the no-break space and U+2028 are no ASCII space.
ids = st.text(
    st.one_of(
        st.sampled_from("ab\u00a0\u2028\u0085é%#"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\v\f\r "),
    ),
    min_size=1,
    max_size=6,
)
scores = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0, 1.0 + 1e-9, 1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    rankings: dict[str, RankedList] = {}
    for question in draw(st.lists(ids, min_size=1, max_size=3, unique=True)):
        names = tuple(draw(st.lists(ids, min_size=1, max_size=6, unique=True)))
        row = st.lists(scores, min_size=len(names), max_size=len(names))
        rankings[question] = RankedList(names, tuple(draw(row)))
    return Run(draw(ids), rankings)


@pytest.mark.slow
@settings(deadline=None)
@given(runs(), st.sampled_from(["docno", "rank"]))
def test_runs_round_trip(run: Run, ties: TieRule) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run")
        write_run(run, path)
        back = read_run(path, ties=ties)
    assert back.name == run.name
    assert [(q, ranked.ids) for q, ranked in back.rankings.items()] == [
        (q, ranked.ids) for q, ranked in run.rankings.items()
    ]


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.dictionaries(
        ids,
        st.dictionaries(ids, st.integers(-2, 4), min_size=1, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_qrels_round_trip(qrels: dict[str, dict[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "qrels")
        write_qrels(qrels, path)
        assert read_qrels(path) == qrels
