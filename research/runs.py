"""
Runs behind the rows of the tables: the command that makes each result file.

In a command, `{name}` is a path that the caller gives: `data` is the folder of the datasets, the
others are named by their content. A run without all of its paths is skipped.
"""

from __future__ import annotations

import os
import shlex
import string
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

__all__ = ["QUICK", "RUNS", "Outcome", "Run", "checkout", "run_all"]


@dataclass(frozen=True, slots=True)
class Run:
    """One command; it writes `research/results/NAME.json`."""

    name: str
    arguments: str
    """Arguments of `python`."""
    takes: str
    """Time and machine."""

    @property
    def command(self) -> str:
        """The command line."""
        return f"python {self.arguments}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the paths that the caller must give."""
        fields = (field for _, field, _, _ in string.Formatter().parse(self.arguments))
        return tuple(dict.fromkeys(field for field in fields if field))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    run: Run
    seconds: float
    problem: str = ""
    """Why it was skipped or failed; empty on success."""


def _runs(*runs: Run) -> dict[str, Run]:
    return {run.name: run for run in runs}


RUNS: dict[str, Run] = _runs(
    Run("sets", "-m research.benchmarks.sets", "15 s, CPU"),
    Run("lexical", "-m research.benchmarks.lexical", "40 s, CPU"),
    Run("first_stage", "-m research.benchmarks.first_stage", "3 min, CPU"),
    Run(
        "light_rankers",
        "-m research.benchmarks.light_rankers --vectors {vectors} --device cuda --jobs 16",
        "15 min, one H200",
    ),
    Run(
        "light_trecqa",
        "-m research.benchmarks.light_trecqa measure --scores {light_trecqa}",
        "5 s, CPU; the training before it 2 min, one H200",
    ),
    Run(
        "transformers",
        "-m research.benchmarks.transformers --data {data} --init {init} --device cuda "
        "--work {work}",
        "20 min, one H200",
    ),
    Run("calibration", "-m research.benchmarks.calibration", "4 min, CPU"),
    Run(
        "cascade_training",
        "-m research.benchmarks.cascade_training {cascade_run}",
        "1 s, CPU; the training before it 4 min, one H200",
    ),
    Run(
        "cascade_runs",
        "-m research.benchmarks.cascade_runs train candidates tests join --data {data} "
        "--general {general} --work {work} --device cuda --folder {cascade}",
        "20 min, one H200",
    ),
    Run(
        "adaptation",
        "-m research.benchmarks.adaptation measure --scores {adapted}",
        "20 s, CPU; the training before it 4 min, one H200",
    ),
    Run("cascade_cost", "-m research.benchmarks.cascade_cost --scores {scores}", "5 min, CPU"),
    Run("cascade_grid", "-m research.benchmarks.cascade_grid --scores {scores}", "10 s, CPU"),
    Run(
        "shallow_encoders",
        "-m research.benchmarks.shallow_encoders measure --work {shallow} --scores {scores}",
        "10 s, CPU; the training before it 2 min, one H200",
    ),
    Run(
        "sequential", "-m research.benchmarks.sequential --scores {scores} --ca {ca}", "10 min, CPU"
    ),
    Run(
        "sequential_times",
        "-m research.benchmarks.sequential --time --ca {ca}",
        "2 min, CPU, quiet",
    ),
    Run(
        "phrase_extractor",
        "-m research.benchmarks.phrase_extractor --init {init} --data {data}",
        "2 min, one H200",
    ),
    Run(
        "reading",
        "-m research.benchmarks.reading quality",
        "5 min, CPU; the training before it 7 min, one H200",
    ),
    Run("phrases", "-m research.benchmarks.phrases --index {phrase_index}", "10 min, CPU"),
    Run(
        "phrases_open",
        "-m research.benchmarks.phrases_open --index {phrase_index} --questions 1000",
        "16 min, CPU, quiet",
    ),
    Run("french", "-m research.benchmarks.french paragraphs", "8 min, CPU"),
    Run(
        "phrases_fr",
        "-m research.benchmarks.phrases --on fquad/valid.json --language fr --name phrases_fr",
        "4 min, CPU; the training before it 13 min, one H200",
    ),
    Run(
        "peers",
        "-m research.benchmarks.peers --data {data} --model {init}",
        "12 min, CPU, quiet",
    ),
)

QUICK: dict[str, Run] = _runs(
    Run("sets", "-m research.benchmarks.sets", "15 s, CPU"),
    Run("lexical", "-m research.benchmarks.lexical", "40 s, CPU"),
    Run("quick", "-m research.benchmarks.quick", "2 min, CPU"),
)


def checkout() -> Path:
    """Return the root of the clone, from which the commands run."""
    return Path(__file__).resolve().parents[1]


def run_all(
    runs: Sequence[Run],
    given: Mapping[str, Path],
    results: Path,
    *,
    log: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """Run one after another; result files and logs are written to `results`."""
    results.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for run in runs:
        missing = [name for name in run.needs if name not in given]
        if missing:
            outcomes.append(Outcome(run, 0.0, f"not given: {', '.join(missing)}"))
        else:
            log(f"{run.command} ({run.takes})")
            outcomes.append(_execute(run, given, results))
        log(f"{run.name}: {outcomes[-1].problem or f'{outcomes[-1].seconds:.0f} s'}")
    return outcomes


def _execute(run: Run, given: Mapping[str, Path], results: Path) -> Outcome:
    paths = {name: str(path.resolve()) for name, path in given.items()}
    arguments = [part.format_map(paths) for part in shlex.split(run.arguments)]
    settings = os.environ | {"ASKLINE_RESULTS": str(results.resolve())}
    settings |= {"ASKLINE_DATA": paths["data"]} if "data" in paths else {}
    begun = monotonic()
    path = results / f"{run.name}.log"
    with path.open("w", encoding="utf-8") as stream:
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=checkout(),
            env=settings,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    problem = f"failed with exit code {ended.returncode}, see {path}" if ended.returncode else ""
    return Outcome(run, monotonic() - begun, problem)
