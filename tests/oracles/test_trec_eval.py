"""
Our measures equal three other implementations on random runs with ties.

They are trec_eval called directly, ir-measures, and the definitions written out below. trec_eval
sorts by score as float32 and then by docno, both descending; so a run file read with `ties="docno"`
must get its values, and rankings must keep the order of their hits.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askline.evaluation import Run, make_qrels, read_qrels, read_run, score_run
from askline.types import Candidate, Hit, Question

pytestmark = pytest.mark.slow

pytrec_eval = pytest.importorskip("pytrec_eval")
ir_measures = pytest.importorskip("ir_measures")

MEASURES = {
    "MAP": ("map", "AP"),
    "MRR": ("recip_rank", "RR"),
    "P@1": ("P_1", "P@1"),
    "P@3": ("P_3", "P@3"),
    "P@10": ("P_10", "P@10"),
    "R@1": ("recall_1", "R@1"),
    "R@3": ("recall_3", "R@3"),
    "nDCG@3": ("ndcg_cut_3", "nDCG@3"),
    "nDCG@10": ("ndcg_cut_10", "nDCG@10"),
    "Success@1": ("success_1", "Success@1"),
    "Success@5": ("success_5", "Success@5"),
}

Scores = Mapping[str, Mapping[str, float]]
Gains = Mapping[str, Mapping[str, int]]

# Few distinct scores make many ties; some are ties only as float32.
scores = st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, 1.0 + 1e-9, -1.0, 16777216.0, 16777217.0])
docnos = st.sampled_from([f"d{number}" for number in range(12)] + ["D1", "é", "z", "10", "9"])
questions = st.sampled_from(["q1", "q2", "q3"])
scored = st.dictionaries(
    questions, st.dictionaries(docnos, scores, min_size=1, max_size=12), min_size=1
)
gains = st.dictionaries(
    questions, st.dictionaries(docnos, st.integers(-1, 3), min_size=1, max_size=8), min_size=1
)


def by_trec_rule(found: Mapping[str, float]) -> list[str]:
    by_name = sorted(found, key=lambda docno: docno.encode(), reverse=True)
    return sorted(by_name, key=lambda docno: -float(np.float32(found[docno])))


def by_definition(order: Sequence[str], judged: Mapping[str, int]) -> dict[str, float]:
    gained = [max(0, judged.get(docno, 0)) for docno in order]
    ideal = sorted((gain for gain in judged.values() if gain > 0), reverse=True)
    if not ideal:
        return dict.fromkeys(MEASURES, 0.0)
    ranks = [rank for rank, gain in enumerate(gained, start=1) if gain]

    def dcg(row: Sequence[int], k: int) -> float:
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(row[:k], start=1))

    def found(k: int) -> int:
        return sum(rank <= k for rank in ranks)

    values = {
        "MAP": sum(count / rank for count, rank in enumerate(ranks, start=1)) / len(ideal),
        "MRR": 1 / ranks[0] if ranks else 0.0,
    }
    for name in MEASURES:
        kind, _, cut = name.partition("@")
        if cut:
            k = int(cut)
            values[name] = {
                "P": found(k) / k,
                "R": found(k) / len(ideal),
                "nDCG": dcg(gained, k) / dcg(ideal, k),
                "Success": float(found(k) > 0),
            }[kind]
    return values


@settings(deadline=None, max_examples=200)
@given(scored, gains)
def test_run_files_get_the_scores_of_trec_eval(run: Scores, qrels: Gains) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_path, qrels_path = Path(folder, "run"), Path(folder, "qrels")
        run_path.write_text(
            "".join(f"{q} Q0 {d} 0 {s!r} x\n" for q, row in run.items() for d, s in row.items()),
            encoding="utf-8",
        )
        qrels_path.write_text(
            "".join(f"{q} 0 {d} {g}\n" for q, row in qrels.items() for d, g in row.items()),
            encoding="utf-8",
        )
        read = read_run(run_path, ties="docno")
        ours = score_run(read, read_qrels(qrels_path), measures=MEASURES)
    trec_names = {trec for trec, _ in MEASURES.values()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, trec_names).evaluate(run)
    for row, question in enumerate(qrels):
        got = {name: values[row] for name, values in ours.items()}
        order = by_trec_rule(run.get(question, {}))
        assert got == pytest.approx(by_definition(order, qrels[question]))
        if question in run:
            assert read.rankings[question].ids == tuple(order)
            assert got == {name: theirs[question][trec] for name, (trec, _) in MEASURES.items()}


@st.composite
def ranked_questions(draw: st.DrawFn) -> list[tuple[Question, list[Hit]]]:
    """Questions with hits in any order, with scores that may tie or rise."""
    ranked = []
    for id_ in draw(st.lists(questions, min_size=1, unique=True)):
        names = draw(st.lists(docnos, max_size=12, unique=True))
        candidates = tuple(Candidate(name, name, is_answer=draw(st.booleans())) for name in names)
        order = draw(st.permutations(range(len(names))))
        hits = [Hit(index, draw(scores)) for index in order]
        ranked.append((Question(id_, "?", candidates), hits))
    return ranked


@settings(deadline=None, max_examples=200)
@given(ranked_questions())
def test_rankings_are_scored_in_the_order_of_their_hits(
    ranked: list[tuple[Question, list[Hit]]],
) -> None:
    run = Run.from_hits("any", ranked)
    qrels = make_qrels(question for question, _ in ranked)
    ours = score_run(run, qrels, measures=MEASURES)
    parsed = {ir_measures.parse_measure(theirs): name for name, (_, theirs) in MEASURES.items()}
    falling = {
        question: {id_: -float(rank) for rank, id_ in enumerate(row.ids)}
        for question, row in run.rankings.items()
    }
    rows = {question.id: row for row, (question, _) in enumerate(ranked)}
    for row, (question, hits) in enumerate(ranked):
        order = [question.candidates[hit.index].id for hit in hits]
        got = {name: values[row] for name, values in ours.items()}
        assert got == pytest.approx(by_definition(order, qrels[question.id]))
    for metric in ir_measures.iter_calc(list(parsed), qrels, falling):
        assert ours[parsed[metric.measure]][rows[metric.query_id]] == metric.value
