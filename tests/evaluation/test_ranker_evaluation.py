from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

import askline.evaluation
from askline.errors import InputError, RankerError, UnknownNameError
from askline.evaluation import evaluate
from askline.rankers.deadline import Stop
from askline.rankers.requests import Request
from askline.types import Hit, Question, QuestionSet, Ranking

from .conftest import Given, Reversed


def test_evaluate_a_small_example(tiny: QuestionSet) -> None:
    evaluation = evaluate(Reversed(), tiny, measures=["MRR", "P@1", "Success@2"])
    assert evaluation.ranker == "reversed"
    assert evaluation.question_set == "tiny:test"
    assert evaluation.question_ids == ("a", "b", "c", "d")
    assert evaluation.candidates == 12
    assert evaluation.values["MRR"].tolist() == [pytest.approx(1 / 3), 0.5, 1, 0]
    assert evaluation.percent == {
        "MRR": pytest.approx(100 * (1 / 3 + 1 / 2 + 1) / 4),
        "P@1": 25.0,
        "Success@2": 50.0,
    }


def test_tied_scores_keep_the_order_of_the_hits(tiny: QuestionSet) -> None:
    forwards = evaluate(Given(), tiny, measures="P@1")
    backwards = evaluate(Reversed(), tiny, measures="P@1")
    assert forwards.values["P@1"].tolist() == [1, 0, 0, 0]
    assert backwards.values["P@1"].tolist() == [0, 0, 1, 0]
    assert backwards.run.rankings["a"].ids == ("a-2", "a-1", "a-0")


def test_questions_without_an_answer_count_zero(tiny: QuestionSet) -> None:
    answerable = QuestionSet(tiny.name, tuple(q for q in tiny if q.answerable))
    assert evaluate(Given(), tiny).percent["MAP"] == pytest.approx(
        evaluate(Given(), answerable).percent["MAP"] * 3 / 4
    )


def test_evaluation_as_dict(tiny: QuestionSet) -> None:
    record = evaluate(Given(), tiny).as_dict()
    assert list(record) == [
        "ranker",
        "question_set",
        "MAP",
        "MRR",
        "P@1",
        "nDCG@10",
        "questions",
        "candidates",
        "ms_per_question",
    ]
    assert (record["P@1"], record["questions"], record["candidates"]) == (25.0, 4, 12)
    assert json.loads(json.dumps(record)) == record


def test_evaluate_times_only_the_ranking(
    tiny: QuestionSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    class Slow(Given):
        def run_batch(self, requests: Sequence[Request], stop: Stop | None) -> list[Ranking]:
            clock[0] += {"a": 1.0, "b": 2.0, "c": 4.0, "d": 3.0}[requests[0].question[-2]]
            return super().run_batch(requests, stop)

    def dawdle(question: Question) -> None:
        clock[0] += 100.0

    monkeypatch.setattr("askline.evaluation.ranker_evaluation.perf_counter", lambda: clock[0])
    evaluation = evaluate(Slow(), tiny, on_question=dawdle)
    assert evaluation.seconds.tolist() == [1.0, 2.0, 4.0, 3.0]
    assert evaluation.ms_per_question == {"p50": 2500.0, "p95": pytest.approx(3850.0)}


def test_on_question_is_called_for_each_question(tiny: QuestionSet) -> None:
    seen: list[str] = []
    evaluate(Given(), tiny, on_question=lambda question: seen.append(question.id))
    assert seen == ["a", "b", "c", "d"]


def test_evaluate_names_the_ranker_that_breaks_its_contract(tiny: QuestionSet) -> None:
    message = "Ranker 'given' broke its contract. Question 'a': .*got 1 hits; missing: 1, 2"
    with pytest.raises(RankerError, match=message):
        evaluate(Given((Hit(0, 1.0),)), tiny)


def test_evaluate_refuses_an_empty_set() -> None:
    with pytest.raises(InputError, match="at least one question, got none in 'none'"):
        evaluate(Given(), QuestionSet("none", ()))


def test_measures_are_checked_before_ranking(tiny: QuestionSet) -> None:
    seen: list[str] = []
    with pytest.raises(UnknownNameError, match="No measure 'MPA'.*Did you mean 'MAP'"):
        evaluate(Given(), tiny, measures="MPA", on_question=lambda q: seen.append(q.id))
    assert seen == []


def test_evaluation_is_immutable(tiny: QuestionSet) -> None:
    evaluation = evaluate(Given(), tiny)
    with pytest.raises(ValueError, match="read-only"):
        evaluation.values["MAP"][0] = 1.0


def test_public_names_are_sorted_and_exist() -> None:
    names = askline.evaluation.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(askline.evaluation, name) for name in names)


def test_import_loads_no_optional_package() -> None:
    code = (
        "import sys, askline.evaluation;"
        "print(*({'pytrec_eval', 'ir_measures', 'scipy', 'torch', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
