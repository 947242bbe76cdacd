"""The plots have the data of the objects that they are drawn from, and change nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import askline
from askline import plots
from askline.errors import InputError, MissingExtraError
from askline.evaluation import Evaluation, evaluate, expected_calibration_error
from askline.tuning import TuningResult, tune
from askline.types import Candidate, Cost, Hit, Question, QuestionSet, Ranking, StageReport

from .tuning.random_tables import table

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

RANKING = Ranking(
    (Hit(0, 0.9),),
    (
        StageReport("cosinet % 40", 100, 40, 0.002),
        StageReport("cascade(depth=4)", 40, 10, 0.0301, 25, Cost(60, 600, 1000, 10_000)),
        StageReport("cascade(depth=10)", 10, 10, 0.01, 0, Cost(60, 900, 1000, 10_000)),
    ),
)


def _axes(figure: Figure) -> Axes:
    (axes,) = figure.axes
    return axes


def _bars(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = (each for each in axes.containers if each.get_label() == label)
    return [(bar.get_x(), bar.get_width()) for bar in found]


def _line(axes: Axes, label: str) -> list[tuple[float, float]]:
    (found,) = (each for each in axes.lines if each.get_label() == label)
    return _points(found)


def _points(line: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in line.get_xydata()]


def _legend(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def _texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_a_funnel_has_a_bar_per_stage() -> None:
    axes = _axes(plots.funnel(RANKING))
    assert _bars(axes, "entered") == [(0, 100), (0, 40), (0, 10)]
    assert _bars(axes, "kept") == [(0, 40), (0, 10), (0, 10)]
    assert _bars(axes, "not scored: time was up") == [(100, 0), (15, 25), (10, 0)]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [stage.ranker for stage in RANKING.stages]
    assert axes.yaxis_inverted()
    assert _texts(axes) == [
        "100 → 40 · 2 ms",
        "40 → 10 · 30.1 ms · 6.0% of full depth",
        "10 → 10 · 10 ms · 9.0% of full depth",
    ]
    title = axes.get_title(loc="left")
    assert title == "100 candidates in 42.1 ms, 15.0% of the cost of full depth"


def test_a_funnel_of_a_light_ranker_has_no_cost() -> None:
    ranking = askline.load("bm25").trace("Who wrote Emma?", ["Emma is a novel.", "Jane Austen."])
    axes = _axes(plots.funnel(ranking))
    assert _bars(axes, "entered") == _bars(axes, "kept") == [(0, 2)]
    assert "full depth" not in axes.get_title(loc="left") + "".join(_texts(axes))
    assert _legend(axes) == ["entered", "kept"]


def test_a_funnel_of_no_candidates_is_drawn() -> None:
    axes = _axes(plots.funnel(askline.load("bm25").trace("Who?", [])))
    assert _bars(axes, "entered") == [(0, 0)]
    with pytest.raises(InputError, match="at least one stage, got none"):
        plots.funnel(Ranking((), ()))


def _evaluation(ranker: str, ms: float, precision: list[float], name: str = "set") -> Evaluation:
    questions = QuestionSet(
        name,
        tuple(
            Question(str(number), "Who?", (Candidate("a", "Jane", True),))
            for number, _ in enumerate(precision)
        ),
    )
    run = evaluate(askline.load("rr"), questions, measures="P@1").run
    seconds = np.full(len(precision), ms / 1000)
    return Evaluation(ranker, name, {"P@1": np.array(precision)}, seconds, len(precision), run)


def test_the_front_of_evaluations_leaves_out_what_a_cheaper_ranker_beats() -> None:
    pytest.importorskip("pytrec_eval", reason="the extra eval is not installed")
    axes = _axes(
        plots.cost_quality_front(
            [
                _evaluation("slow", 100, [1, 1, 1, 0]),
                _evaluation("fast", 1, [1, 0, 0, 0]),
                _evaluation("bad", 10, [0, 0, 0, 0]),
                _evaluation("middle", 20, [1, 1, 0, 0]),
            ]
        )
    )
    front = [(1.0, 25.0), (20.0, 50.0), (100.0, 75.0)]
    assert _line(axes, "Pareto front") == [pytest.approx(point) for point in front]
    points = {line.get_gid(): _points(line)[0] for line in axes.lines if line.get_gid()}
    assert points["bad"] == pytest.approx((10, 0))
    assert sorted(_texts(axes)) == ["bad", "fast", "middle", "slow"]
    assert axes.get_xscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("median milliseconds per question", "P@1, %")
    assert axes.get_title(loc="left") == "set: 4 questions"


def test_evaluations_that_cannot_be_compared_are_refused() -> None:
    pytest.importorskip("pytrec_eval", reason="the extra eval is not installed")
    one = _evaluation("a", 1, [1.0])
    with pytest.raises(InputError, match="at least one evaluation, got none"):
        plots.cost_quality_front([])
    with pytest.raises(InputError, match="of one question set, got set, other"):
        plots.cost_quality_front([one, _evaluation("a", 1, [1.0], "other")])
    with pytest.raises(InputError, match=r"with MAP, got P@1 of a.*measures='MAP'"):
        plots.cost_quality_front([one], measure="MAP")


@pytest.fixture(scope="module")
def tuned() -> TuningResult:
    return tune([table(40, 12, first_stage=True)], budget=0.6, counts=(6, 12), first=True)


def test_the_front_of_a_tuning_has_a_line_and_a_circle_per_length(tuned: TuningResult) -> None:
    axes = _axes(plots.cost_quality_front(tuned))
    for row in tuned.rows:
        front = [(trial.mean_cost, 100 * trial.p1) for trial in row.front]
        assert _line(axes, f"{row.count} candidates") == [pytest.approx(point) for point in front]
    whole = tuned.pipelines[0]
    assert len(_line(axes, f"{whole.count}, with first stage")) == len(whole.front)
    circles = {_points(line)[0] for line in axes.lines if line.get_marker() == "o"}
    chosen = [row.choice.trial for row in (*tuned.rows, *tuned.pipelines)]
    assert circles == {(trial.mean_cost, 100 * trial.p1) for trial in chosen}
    low, high = axes.get_ylim()
    assert all(low <= 100 * trial.p1 <= high for trial in chosen)
    assert {x for x, _ in _line(axes, "budget 60%")} == {0.6}
    with pytest.raises(InputError, match="drawn by P@1, got measure='MAP'"):
        plots.cost_quality_front(tuned, measure="MAP")


def test_a_calibration_curve_has_a_point_per_bin() -> None:
    probabilities, labels = [0.1, 0.1, 0.1, 0.9, 0.9], [0, 0, 1, 1, 1]
    axes = _axes(plots.calibration_curve(probabilities, labels, bins=5))
    error = expected_calibration_error(probabilities, labels, bins=5)
    ((line, _, (bars,)),) = axes.containers
    assert _points(line) == [pytest.approx((0.1, 1 / 3)), pytest.approx((0.9, 1.0))]
    assert _line(axes, "perfect") == [(0, 0), (1, 1)]
    assert _legend(axes) == ["perfect", f"ECE {error:.1%}, 5 pairs"]
    # The intervals of Wilson, as computed by hand for 1 of 3 and for 2 of 2.
    ends = [own[:, 1].tolist() for own in bars.get_segments()]
    assert ends == [
        pytest.approx([0.0615, 0.7923], abs=1e-3),
        pytest.approx([0.3424, 1.0], abs=1e-3),
    ]


def test_several_calibrations_of_the_same_pairs_have_a_curve_each() -> None:
    named = {"as they are": [0.2, 0.8], "fitted": [0.4, 0.6]}
    axes = _axes(plots.calibration_curve(named, [False, True]))
    assert _legend(axes) == [
        "perfect",
        "as they are: ECE 20.0%, 2 pairs",
        "fitted: ECE 40.0%, 2 pairs",
    ]
    colors = {container[0].get_color() for container in axes.containers}
    assert len(colors) == 2


DRAWN: dict[str, Callable[[Axes | None], Figure]] = {
    "funnel": lambda axes: plots.funnel(RANKING, axes=axes),
    "calibration": lambda axes: plots.calibration_curve([0.2, 0.8], [0, 1], axes=axes),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_a_plot_goes_into_the_axes_of_the_caller(draw: Callable[[Axes | None], Figure]) -> None:
    figure = Figure()
    (left, right) = figure.subplots(1, 2)
    assert draw(right) is figure
    assert not left.has_data()
    assert right.has_data()
    nested = Figure()
    subfigure = nested.add_subfigure(nested.add_gridspec(1, 2)[0])
    assert draw(subfigure.subplots()) is nested


@pytest.mark.slow
def test_no_setting_is_changed_and_no_figure_is_kept(tmp_path: Path) -> None:
    program = f"""
import matplotlib
before = matplotlib.rcParams.copy()
from askline import plots
plots.calibration_curve([0.2, 0.8], [0, 1]).savefig({str(tmp_path / "curve.png")!r})
assert matplotlib.rcParams.copy() == before
import sys
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_a_plot_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[plots\]'"):
        plots.funnel(RANKING)
