"""
What people wait for, in two versions of askline, side by side in one run.

    ASKLINE_DATA=DIR python -m research.benchmarks.speed OTHER [--only start lists …] [--rounds 9]

OTHER is a checkout of the version to compare with. The two take turns, each in processes of its
own, and every figure is the best and the median of the rounds, by the clock and in processor time
of all processes. Modules are compiled once, as in an installed copy. The cache folder is empty at
the beginning, and the first answer of each version, which fills it, does not count. Parts:

- start: `askline ask` on an existing index and `askline rank`, from the start of the process to its
  end, and the memory of its processes;
- lists: 20 and 100 candidates, SQuAD and WikiQA questions, in a process that is warm, with the
  share of the measured int8 peak that the dense layers reach;
- phrases: encoding the phrases of small files, per document, from the start of the process and in
  one that is warm, with the same share;
- index: `--megabytes` of txt, md and html, `--files` notes, and both folders once more, unchanged,
  with MB per second, the share of the disk's write speed, and the memory of all processes.

Writes research/results/speed.json, one entry per part.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from askline import data
from askline.phrases import PhraseIndex, PhraseModel

from . import common
from .engine import peak
from .indexing_speed import FORMATS, make_notes, paragraph

PARTS = ("start", "lists", "phrases", "index")
QUESTION = "Which processors are supported?"
LINES = "Emma is a novel.\nJane Austen wrote Emma.\nIt appeared in 1815.\n"
PHRASE_MODEL = "askline/models/shipped/phrases"
LISTS = 24
PROCESSES = 5  # of each version for lists: one can be a tenth slower than another throughout
PHRASE_FILES = 76
POLL_SECONDS = 0.05

RANK = """
import json, sys, time
import askline
lists = json.load(open(sys.argv[1]))
ranker = askline.load("cascade")
layers = sum(s.cost.token_layers for q, c in lists for s in ranker.trace(q, c).stages if s.cost)
print(layers, flush=True)
for _ in sys.stdin:
    wall, processor = time.perf_counter(), time.process_time()
    for question, candidates in lists:
        ranker.rank(question, candidates)
    print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
"""
PHRASES = """
import sys
from askline import Corpus
with Corpus.open(sys.argv[1]) as corpus:
    corpus.encode_phrases()
"""
ENCODE = """
import json, sys, time
from askline.phrases import PhraseModel
texts = json.load(open(sys.argv[1]))
model = PhraseModel.load()
print(len(model.encode_many(texts)), flush=True)
for _ in sys.stdin:
    wall, processor = time.perf_counter(), time.process_time()
    model.encode_many(texts)
    print(time.perf_counter() - wall, time.process_time() - processor, flush=True)
"""
INDEX = """
import sys
from askline import Corpus
with Corpus.open(sys.argv[2]) as corpus:
    report = corpus.add([sys.argv[1]])
    assert not report.problems, report.problems[:3]
"""


class Run(NamedTuple):
    """What a process and its children took."""

    wall: float
    processor: float
    megabytes: float


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--files", type=int, default=10_000)
    given = parser.parse_args()
    trees = {"before": given.other.resolve(), "now": common.ROOT}
    figures = common.load_or_empty("speed")
    figures.pop("environment", None)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(work / "bytecode")
        os.environ["XDG_CACHE_HOME"] = str(work / "cache")
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "start": lambda: measure_start(trees, work, given.rounds),
            "lists": lambda: measure_lists(trees, work, given.rounds),
            "phrases": lambda: measure_phrases(trees, work, max(1, given.rounds // 3)),
            "index": lambda: measure_index(
                trees, work, max(1, given.rounds // 3), given.megabytes, given.files
            ),
        }
        for name in given.only:
            figures[name] = parts[name]()
            print(name, json.dumps(figures[name], indent=1), flush=True)
    common.save("speed", figures, "onnxruntime", "tantivy")


def measure_start(trees: Mapping[str, Path], work: Path, rounds: int) -> dict[str, Any]:
    """`askline ask` and `askline rank`, each in a new process."""
    for name, tree in trees.items():
        _run(tree, ["-c", INDEX, str(common.ROOT / "docs"), str(work / f"docs-{name}")])
    commands = {
        "ask": lambda name: ["-m", "askline", "ask", QUESTION, "--index", f"docs-{name}"],
        "rank": lambda _: ["-m", "askline", "rank", "Who wrote Emma?"],
    }
    found: dict[str, Any] = {}
    for label, command in commands.items():
        runs = _in_turns(
            trees,
            rounds + 1,
            lambda name, tree, own=command: _run(tree, own(name), cwd=work),  # type: ignore[misc]
        )
        found[label] = _compared({name: own[1:] for name, own in runs.items()})
    return found


def measure_lists(trees: Mapping[str, Path], work: Path, rounds: int) -> dict[str, Any]:
    """Lists of 20 and of 100 candidates."""
    found: dict[str, Any] = {}
    cores = len(os.sched_getaffinity(0))
    most = peak("int8", cores) * 1e9
    for count in (20, 100):
        path = work / f"lists-{count}.json"
        path.write_text(json.dumps(_lists(count)), "utf-8")
        runs, layers = _served(trees, RANK, path, rounds, LISTS)
        row = found[str(count)] = _compared(runs)
        for name, own in runs.items():
            products = layers[name] / LISTS * _products(384, 1536)
            seconds = min(one.processor for one in own) / cores
            row[name]["token-layers per list"] = round(layers[name] / LISTS)
            row[name]["share of the int8 peak"] = round(products / seconds / most, 3)
    return found | {"int8 peak, billion products per second": round(most / 1e9, 1)}


def measure_phrases(trees: Mapping[str, Path], work: Path, rounds: int) -> dict[str, Any]:
    """Seconds per document, with the start of the program and in a process that has started."""
    folder = work / "pages"
    _write_pages(folder, PHRASE_FILES, paragraphs=3)
    for name, tree in trees.items():
        _run(tree, ["-c", INDEX, str(folder), str(work / f"pages-{name}")])

    def encode(name: str, tree: Path) -> Run:
        target = work / "encoded"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / f"pages-{name}", target)
        run = _run(tree, ["-c", PHRASES, str(target)])
        return Run(run.wall / PHRASE_FILES, run.processor / PHRASE_FILES, run.megabytes)

    found = _compared(_in_turns(trees, rounds, encode))
    index = PhraseIndex.open(work / "encoded" / "phrases")
    texts = [index.text(name) for name in index.documents]
    path = work / "texts.json"
    path.write_text(json.dumps(texts), "utf-8")
    started = _compared(_served(trees, ENCODE, path, rounds, PHRASE_FILES)[0])
    most = peak("int8", 1) * 1e9
    for name, tree in trees.items():
        model = PhraseModel.load(tree / PHRASE_MODEL)
        tokens = sum(len(window) for text in texts for window, _ in model.candidate_tokens(text))
        encoder = model.config.document_encoder
        products = tokens * encoder.layers * _products(encoder.width, encoder.inner)
        fastest = products / PHRASE_FILES / most
        share = fastest / found[name]["processor seconds"]
        found[name]["share of the int8 peak"] = round(share, 3)
        found[name]["dense layers at the int8 peak, processor seconds"] = round(fastest, 4)
    return found | {"started": started}


def measure_index(
    trees: Mapping[str, Path], work: Path, rounds: int, megabytes: int, files: int
) -> dict[str, Any]:
    """New indexes of two folders, and both again without a change."""
    large, notes = work / "large", work / "notes"
    size = _write_megabytes(large, megabytes)
    notes.mkdir()
    make_notes(notes, files)
    written = _disk_bytes_per_second(work)
    found: dict[str, Any] = {"disk, MB written per second": round(written / 1e6)}
    for label, folder in (("large", large), ("notes", notes)):

        def index(name: str, tree: Path, own: Path = folder) -> Run:
            target = work / f"index-{name}"
            shutil.rmtree(target, ignore_errors=True)
            return _run(tree, ["-c", INDEX, str(own), str(target)])

        def again(name: str, tree: Path, own: Path = folder) -> Run:
            return _run(tree, ["-c", INDEX, str(own), str(work / f"index-{name}")])

        found[label] = _compared(_in_turns(trees, rounds, index))
        found[f"{label}, unchanged"] = _compared(_in_turns(trees, rounds, again))
        if label == "large":
            for name in trees:
                row = found[label][name]
                row["MB per second"] = round(size / 1e6 / row["seconds"], 2)
                stored = sum(file.stat().st_size for file in (work / f"index-{name}").rglob("*.*"))
                row["share of the disk"] = round(stored / row["seconds"] / written, 3)
    return found


def _products(width: int, inner: int) -> int:
    """Of the dense layers, per token and layer."""
    return 4 * width**2 + 2 * width * inner


def _served(
    trees: Mapping[str, Path], script: str, path: Path, rounds: int, items: int
) -> tuple[dict[str, list[Run]], dict[str, float]]:
    """Runs per item in processes that have started, in turns; the number that each prints first."""
    runs: dict[str, list[Run]] = {name: [] for name in trees}
    first: dict[str, float] = {}
    for _ in range(PROCESSES):
        with ExitStack() as stack:
            ready = {
                name: stack.enter_context(_server(tree, script, str(path)))
                for name, tree in trees.items()
            }
            first |= {name: float(own[1].readline()) for name, own in ready.items()}
            for _ in range(rounds):
                for name, (stdin, stdout) in ready.items():
                    stdin.write("\n")
                    stdin.flush()
                    wall, processor = map(float, stdout.readline().split())
                    runs[name].append(Run(wall / items, processor / items, 0.0))
    return runs, first


def _in_turns(
    trees: Mapping[str, Path], rounds: int, work: Callable[[str, Path], Run]
) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {name: [] for name in trees}
    for _ in range(rounds):
        for name, tree in trees.items():
            found[name].append(work(name, tree))
    return found


def _compared(runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """The best and the median of both versions, and the ratios of the second to the first."""
    rows: dict[str, Any] = {
        name: {
            "seconds": round(min(run.wall for run in own), 4),
            "median seconds": round(statistics.median(run.wall for run in own), 4),
            "processor seconds": round(min(run.processor for run in own), 4),
            "MB": round(max(run.megabytes for run in own)),
        }
        for name, own in runs.items()
    }
    before, now = rows["before"], rows["now"]
    keys = ("seconds", "median seconds", "processor seconds")
    rows["now, share of before"] = {key: round(now[key] / before[key], 3) for key in keys}
    return rows


def _run(tree: Path, arguments: Sequence[str], cwd: Path | None = None) -> Run:
    """A Python process with a checkout's askline; its memory is that of all its processes."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=cwd or tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    with _memory_of(process.pid) as memory:
        process.communicate(LINES.encode())
        wall = time.perf_counter() - start
    if process.returncode not in (0, 4):  # 4: no answer above the threshold
        raise SystemExit(f"{' '.join(arguments[:4])} failed in {tree}.")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Run(wall, processor, memory[0])


@contextmanager
def _memory_of(pid: int) -> Iterator[list[float]]:
    """The highest sum of the proportional memory of a process and its children, in MB, polled."""
    most, done = [0.0], threading.Event()

    def poll() -> None:
        while not done.wait(POLL_SECONDS):
            most[0] = max(most[0], sum(map(_proportional, _tree_of(pid))) / 1024)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def _tree_of(pid: int) -> list[int]:
    found, at = [pid], 0
    while at < len(found):
        try:
            path = Path(f"/proc/{found[at]}/task/{found[at]}/children")
            found += map(int, path.read_text("ascii").split())
        except OSError:
            pass
        at += 1
    return found


def _proportional(pid: int) -> int:
    """KB; memory that processes share is divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:  # it has ended
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


@contextmanager
def _server(tree: Path, program: str, *arguments: str) -> Iterator[tuple[IO[str], IO[str]]]:
    """A Python process with a checkout's askline that answers lines."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
    finally:
        process.stdin.close()
        process.wait()


def _lists(count: int) -> list[tuple[str, list[str]]]:
    """Half of the questions from SQuAD, half from WikiQA dev, padded."""
    found: list[tuple[str, list[str]]] = []
    for name in ("squad1:dev", "wikiqa:dev"):
        questions = data.pad(data.load_dataset(name, root=common.data_root()), to=count)
        answerable = data.filter_questions(questions, "answerable")
        chosen = common.evenly(answerable, LISTS // 2)
        found += [(each.text, each.texts[:count]) for each in chosen]
    return found


def _write_pages(folder: Path, files: int, *, paragraphs: int) -> None:
    rng = random.Random(1)
    folder.mkdir()
    for number in range(files):
        suffix = ("txt", "md", "html")[number % 3]
        text = FORMATS[suffix](number, [paragraph(rng) for _ in range(paragraphs)])
        (folder / f"{number:05}.{suffix}").write_text(text, "utf-8")


def _write_megabytes(folder: Path, megabytes: int) -> int:
    """Files of about 200 KB, a third of each text format; returns their size."""
    rng = random.Random(2)
    folder.mkdir()
    size = number = 0
    while size < megabytes * 1_000_000:
        suffix = ("txt", "md", "html")[number % 3]
        text = FORMATS[suffix](number, [paragraph(rng) for _ in range(450)])
        path = folder / f"{number // 100:03}" / f"{number:06}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        size, number = size + path.stat().st_size, number + 1
    return size


def _disk_bytes_per_second(folder: Path) -> float:
    """Writing 256 MB with fsync."""
    block, path = os.urandom(2**20), folder / "disk"
    start = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(256):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    path.unlink()
    return 256 * 2**20 / seconds


if __name__ == "__main__":
    main()
