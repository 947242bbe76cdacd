"""
Fuzz the file readers with mutated files, and check that time grows linearly with the text.

    python -m research.fuzzing.readers [--files N] [--seconds N] [--seed N] [--state FILE] [--save]

Every file is read as `askline index` reads it: in a child process, within the default limits. A
finding is a crash of the process, a file past a limit, or an exception that is not a message for
the user. Then the splitter and the readers of text formats read long repetitions of their tokens,
once and twice as long: taking more than three times as long is a finding.

It ends after `--files` files or, without that, after `--seconds`. Progress is printed every half
minute. `--state` keeps the counts in a file: a run that was stopped goes on from there. `--save`
writes research/results/reader_fuzzing.json. The exit code is 1 if there is a finding; the files are
kept.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from askline.errors import DataError
from askline.text.readers import FileContent, ReaderPool, ReadLimitError, ReadLimits, read_content
from askline.text.readers.kinds import FileKind
from askline.text.sentences import split_sentences
from research.benchmarks.common import save

from .mutations import BINARY, KINDS, TOKENS, MutatedFile, mutated_files, suffixes_of

__all__ = ["FileFindings", "fuzz_files", "fuzz_time", "main"]

_DEFECTS = ("The reader of its format failed", "Its text cannot be split")
_AHEAD = 64
_REPORT_SECONDS = 30.0
_MOST_SECONDS = 20.0  # for one growing text
_GROWING_SECONDS = 75.0  # for all growing texts
_SHORT_SECONDS = 0.2  # below this, differences of times are noise


@dataclass
class FileFindings:
    """The counts of a run over mutated files, which can go on where it stopped."""

    seed: int
    files: int = 0
    outcomes: dict[str, dict[str, int]] = field(default_factory=dict)
    """By format: how many files were `read`, `refused`, or have a finding of some kind."""
    slowest_seconds: float = 0.0
    """From the order to read a file to its result, waiting for other files included."""
    findings: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def load(cls, path: Path, seed: int) -> FileFindings:
        """The state that an earlier run left, or that of a new one."""
        if not path.exists():
            return cls(seed)
        found = cls(**json.loads(path.read_text("utf-8")))
        if found.seed != seed:
            raise SystemExit(f"{path} is of a run with --seed {found.seed}, got {seed}.")
        return found

    def save(self, path: Path) -> None:
        """Replace the file at once, so that a stopped run leaves a whole one."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(path)

    def add(self, kind: str, outcome: str, seconds: float) -> None:
        """Count one file."""
        self.files += 1
        counts = self.outcomes.setdefault(kind, {})
        counts[outcome] = counts.get(outcome, 0) + 1
        self.slowest_seconds = max(self.slowest_seconds, round(seconds, 2))

    def count(self, outcome: str) -> int:
        """How many files of all formats had an outcome."""
        return sum(counts.get(outcome, 0) for counts in self.outcomes.values())


def fuzz_files(
    folder: Path,
    *,
    files: int,
    seconds: float,
    seed: int,
    limits: ReadLimits,
    state: Path | None = None,
) -> FileFindings:
    """
    Read mutated files until one of both is reached; files with findings stay in the folder.

    `files` counts those of earlier runs with the same `state`.
    """
    found = FileFindings(seed) if state is None else FileFindings.load(state, seed)
    started = reported = time.monotonic()
    waiting: deque[tuple[MutatedFile, Path, Future[FileContent], float]] = deque()

    def finish() -> None:
        nonlocal reported
        file, path, future, submitted = waiting.popleft()
        outcome, message = _outcome(future)
        found.add(file.kind, outcome, time.monotonic() - submitted)
        if outcome in ("read", "refused"):
            path.unlink()
        else:
            _report(found, path.name, outcome, message)
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            print(
                f"{found.files:,} files, {len(found.findings)} findings, "
                f"{reported - started:.0f} s",
                flush=True,
            )
            if state is not None:
                found.save(state)

    with ReaderPool(limits) as pool:
        for file in islice(mutated_files(seed + found.files), max(0, files - found.files)):
            if time.monotonic() - started > seconds:
                break
            path = folder / f"{file.seed}.{file.suffix}"
            path.write_bytes(file.data)
            waiting.append((file, path, pool.submit(path), time.monotonic()))
            if len(waiting) > _AHEAD:
                finish()
        while waiting:
            finish()
        if pool.crashed_batches and not found.count("crash"):
            message = f"{pool.crashed_batches} times, and not when each file was read alone."
            _report(found, "several", "crash", message)
    if state is not None:
        found.save(state)
    return found


def _report(found: FileFindings, name: str, outcome: str, message: str) -> None:
    found.findings.append({"file": name, "outcome": outcome, "message": message})
    print(f"{name}: {outcome}: {message}", flush=True)


def _outcome(future: Future[FileContent]) -> tuple[str, str]:
    try:
        future.result()
    except ReadLimitError as error:
        message = error.problems[0].message
        return ("crash" if "ended the reader" in message else "past limit"), message
    except DataError as error:
        message = error.problems[0].message
        return ("defect" if message.startswith(_DEFECTS) else "refused"), message
    except Exception as error:
        return "defect", repr(error)
    return "read", ""


def fuzz_time(folder: Path, *, seconds: float, seed: int, length: int = 20_000) -> dict[str, Any]:
    """Compare the time of a text with that of one twice as long, until the time is over."""
    rng = random.Random(seed)
    end = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _stop)
    findings: list[dict[str, object]] = []
    count, worst = 0, 0.0
    while time.monotonic() < end:
        kind = rng.choice([each for each in KINDS if each not in BINARY])
        tokens = TOKENS[kind]
        before, after = ("".join(rng.choices(tokens, k=rng.randint(0, 3))) for _ in range(2))
        unit = "".join(rng.choices(tokens, k=rng.choice((1, 1, 2, 3))))
        path = folder / f"time.{rng.choice(suffixes_of(kind))}"

        def measure(
            factor: int,
            kind: FileKind = kind,
            path: Path = path,
            before: str = before,
            unit: str = unit,
            after: str = after,
        ) -> float:
            text = before + unit * (factor * length // len(unit)) + after
            if kind == "text":
                return _seconds(lambda: split_sentences(text))
            path.write_text(text, encoding="utf-8", newline="")
            return _seconds(lambda: read_content(path))

        once, twice = measure(1), measure(2)
        count += 1
        if twice > _SHORT_SECONDS and twice > 3 * once:  # measured again, longer: noise goes away
            once, twice = measure(2), measure(4)
        ratio = twice / max(once, 1e-9) if twice > _SHORT_SECONDS else 0.0
        worst = max(worst, ratio)
        if ratio > 3 or once > _MOST_SECONDS / 2:
            findings.append(
                {"file": path.name, "before": before, "unit": unit, "after": after, "ratio": ratio}
            )
            print("not linear:", findings[-1], flush=True)
    return {
        "texts": count,
        "characters": [length, 2 * length],
        "largest_ratio": round(worst, 2),
        "findings": findings,
    }


def _seconds(call: Callable[[], object]) -> float:
    """Processor seconds of a call, which is stopped when it takes too long."""
    start = time.process_time()
    signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
    with suppress(DataError, _StoppedError):
        call()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return time.process_time() - start


class _StoppedError(BaseException):
    """Not an Exception, because readers turn those into messages."""


def _stop(*_: object) -> None:
    raise _StoppedError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--files", type=int)
    parser.add_argument("--seconds", type=float, help="in all; 300, or no limit with --files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="where to keep the counts of the files")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    seconds = arguments.seconds or (300.0 if arguments.files is None else math.inf)
    folder = Path(tempfile.mkdtemp(prefix="askline-fuzzing-"))
    started = time.monotonic()
    files = fuzz_files(
        folder,
        files=arguments.files or 10**9,
        seconds=seconds * 0.75,
        seed=arguments.seed,
        limits=ReadLimits(),
        state=arguments.state,
    )
    file_seconds = time.monotonic() - started
    left = min(seconds * 0.25, seconds - file_seconds, _GROWING_SECONDS)
    linear = fuzz_time(folder, seconds=left, seed=arguments.seed)
    crashes, past_limit, defects = map(files.count, ("crash", "past limit", "defect"))
    print(
        f"{files.files:,} mutated files of {len(files.outcomes)} formats in {file_seconds:.0f} s: "
        f"{crashes} crashes, {past_limit} past a limit, {defects} other defects; slowest "
        f"{files.slowest_seconds} s. "
        f"{linear['texts']:,} growing texts: {len(linear['findings'])} not linear."
    )
    if arguments.save:
        counts = {"crashes": crashes, "past_limit": past_limit, "defects": defects}
        figures = {"mutated_files": asdict(files) | counts, "growing_texts": linear}
        print(f"Saved to {save('reader_fuzzing', figures, 'pypdfium2', 'charset-normalizer')}")
    if files.findings or linear["findings"]:
        print(f"The files are in {folder}.")
        sys.exit(1)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
