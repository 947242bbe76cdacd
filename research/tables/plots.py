"""The report's pictures, drawn from the result files; one without figures is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .chart import Axis, Chart, Series
from .lines import Section
from .places import ResultFiles

__all__ = ["charts"]

_NOT_DRAWN = ("bm25", "bm25s", "jaccard", "jaccard % 100 >> cascade", "cascade")
_KEPT = ("jaccard", "bm25", "idf-overlap", "cosinet", "compare-aggregate")


def charts(results: ResultFiles, sections: Iterable[Section]) -> list[str]:
    """Each picture as SVG."""
    found = list(sections)
    drawn: list[Callable[[], Chart]] = [
        lambda: _by_cost(results),
        lambda: _by_parameters(results, found),
        lambda: _by_kept(results),
        lambda: _grid(results),
        lambda: _by_candidates(results),
        lambda: _reliability(results),
    ]
    return [picture for draw in drawn if (picture := draw().svg())]


def _by_cost(results: ResultFiles) -> Chart:
    """The cascade by depth and by drop ratio."""
    rows = _object(results.at("cascade_runs", "test-shipped", "wikiqa-test-400"))
    depths = [(int(key), own) for key, own in rows.items() if key.isdigit()]
    full = max((depth for depth, _ in depths), default=1)
    last = max(_list(results.at("cascade_cost", "depths")), default=full)  # in what ships
    single = [(100 * depth / full, own[2], f"{depth} layers") for depth, own in depths]
    dropped = [(100 * own[3], own[2], key) for key, own in rows.items() if "alpha" in key]
    tuned = [
        (100 * row["token-layers"] * last / full, row["P@1"], row["row"])
        for row in _list(results.at("cascade_cost", "WikiQA, 243 questions, 400 candidates"))
        if "tuned" in row["row"]
    ]
    series = (
        _series("one depth for all", single, line=True),
        _series("a share dropped", dropped),
        _series("tuned schedule", tuned),
    )
    return Chart(
        "WikiQA test, 400 candidates: P@1 against cost",
        Axis("layers computed, relative to all twelve", low=0, unit=" %"),
        Axis("P@1, %"),
        tuple(own for own in series if own.points),
    )


def _by_parameters(results: ResultFiles, sections: Iterable[Section]) -> Chart:
    """Cosinet's Table 4, theirs and ours, and the small transformers."""
    table = next((own for own in sections if own.table.id == "cosinet-4"), None)
    theirs, ours = [], []
    for line in table.lines if table else ():
        quality, _, parameters, _ = line.cells
        if quality.published and parameters.published:
            theirs.append((parameters.published, quality.published, line.name))
        if quality.ours and parameters.ours:
            ours.append((parameters.ours.value, quality.ours.value, line.name))
    small = [
        (row["parameters"], row["test"]["MAP"], f"{row['depth']} layers, seed {row['seed']}")
        for row in _list(results.at("transformers", "rows", "adapt_wikiqa"))
    ]
    series = (
        _series("published", theirs),
        _series("ours", ours),
        _series("transfer and adapt, ours", small),
    )
    return Chart(
        "WikiQA test: MAP against parameters",
        Axis("parameters", log=True),
        Axis("MAP, %"),
        tuple(own for own in series if own.points),
    )


def _by_kept(results: ResultFiles) -> Chart:
    """Figure 2 of the Sequential rerankers."""
    rows = _object(results.at("sequential", "wikiqa:test padded to 1300"))
    series = []
    for name in _KEPT:
        kept = rows.get(name, {}).get("kept", {})
        points = [(float(keep), own["P@1"], f"{name}, {keep} kept") for keep, own in kept.items()]
        if points:
            series.append(_series(name, points, line=True))
    return Chart(
        "WikiQA test, 1,300 candidates: P@1 against how many the first stage keeps",
        Axis("candidates kept for the cascade", log=True, low=1, high=1000),
        Axis("P@1, %"),
        tuple(series),
    )


def _grid(results: ResultFiles) -> Chart:
    """Figure 2 of the Cascade Transformer."""
    settings = _list(results.at("cascade_grid", "settings"))
    points = [(100 * row[4], row[5], ", ".join(map(str, row[:4]))) for row in settings]
    same = [(x, y, label) for x, y, label in points if len(set(label.split(", "))) == 1]
    series = [_series("four ratios", points, faint=True), _series("the same four times", same)]
    return Chart(
        "Four dev sets, 20 candidates: every setting of four drop ratios",
        Axis("layers computed, relative to full depth", unit=" %"),
        Axis("P@1, %", least=6),
        tuple(own for own in series if own.points),
    )


def _by_candidates(results: ResultFiles) -> Chart:
    """Beside what people use, on two cores; the cascade alone on a GPU and by processor time."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in _list(results.at("peers", "rows")):
        if row["system"] not in _NOT_DRAWN:
            found.setdefault(row["system"], []).append((row["candidates"], row["ms p50"]))
    for row in _list(results.at("cascade_gpu", "rows")):
        if row["schedule"] == "full depth":
            found.setdefault("cascade, one H200", []).append((row["candidates"], row["ms"]))
    for way, rows in _object(results.at("engine_growth", "ways")).items():
        own = [(int(count), row["processor ms"]) for count, row in rows.items()]
        found[f"cascade({way}), processor time"] = own
    series = [
        _series(name, [(float(x), y, f"{name}, {x:,}") for x, y in sorted(own)], line=True)
        for name, own in found.items()
    ]
    return Chart(
        "Milliseconds a question against candidates",
        Axis("candidates", log=True),
        Axis("ms, median", log=True),
        tuple(series),
    )


def _reliability(results: ResultFiles) -> Chart:
    curves = _object(results.at("calibration", "reliability"))
    series = [
        _series(
            name,
            [(100 * own["said"], 100 * own["true"], f"{own['pairs']:,} pairs") for own in bins],
            line=True,
        )
        for name, bins in curves.items()
    ]
    return Chart(
        "How far a chance can be trusted: SQuAD v2.0 dev",
        Axis("chance given, %", low=0, high=100),
        Axis("share that is right, %", low=0, high=100),
        tuple(series),
        diagonal=True,
    )


def _series(
    name: str,
    points: Iterable[tuple[float, float, str]],
    *,
    line: bool = False,
    faint: bool = False,
) -> Series:
    own = list(points)
    labels = tuple(f"{label}: {y:.2f}" for _, y, label in own)
    return Series(name, tuple((x, y) for x, y, _ in own), labels, line, faint)


def _object(found: list[Any]) -> dict[str, Any]:
    return found[0] if found and isinstance(found[0], dict) else {}


def _list(found: list[Any]) -> list[Any]:
    return found[0] if found and isinstance(found[0], list) else []
