"""
A test of all programs in a few minutes on a CPU: train, export, run without torch, measure.

    ASKLINE_DATA=DIR ASKLINE_RESULTS=DIR python -m research.benchmarks.quick

Cosinet list + BiRNN and a cascade of twelve layers, 32 wide, are trained on a hundred questions of
WikiQA and measured on twenty test questions; their figures have no meaning. Writes
light_rankers.json, cascade_training.json and cascade_runs.json in the form of the full runs, only
to the folder in ASKLINE_RESULTS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import askline
from askline import data
from askline.evaluation import evaluate
from askline.text.words import split_words
from askline.types import QuestionSet

from .common import data_root, save

TRAINED_ON, MEASURED_ON = 100, 20
DEPTHS = (4, 6, 8, 10, 12)
ALPHAS = (0.3, 0.4, 0.5)
ROW = "Cosinet list + BiRNN"


def some(name: str, count: int, *, pad: int = 0) -> QuestionSet:
    """The first questions with an answer."""
    found = data.load_dataset(name, root=data_root())
    found = data.filter_questions(data.pad(found, pad) if pad else found, "answerable")
    return QuestionSet(name, found.questions[:count])


def write(questions: QuestionSet, path: Path) -> Path:
    """Write a set as a JSONL file."""
    lines = (
        {
            "question": question.text,
            "candidates": list(question.texts),
            "labels": [int(candidate.is_answer) for candidate in question.candidates],
        }
        for question in questions
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def command(*arguments: str | Path) -> None:
    """Run an `askline` command."""
    program = "from askline.cli import main; main()"
    print("askline", *arguments, flush=True)
    subprocess.run([sys.executable, "-c", program, *map(str, arguments)], check=True)


def light(folder: Path, train: Path, test: QuestionSet) -> dict[str, Any]:
    begun = time.monotonic()
    out = folder / "cosinet"
    command("train", "cosinet", "--on", train, "--variant", "birnn", "--epochs", "1", "--out", out)
    seconds = round(time.monotonic() - begun, 1)
    done = evaluate(askline.load(f"cosinet({str(out)!r})"), test, measures="MAP,MRR,P@1")
    measured = {f"test {name}": round(value, 2) for name, value in done.percent.items()}
    return {"wikiqa": [{"row": ROW, "seeds": 1, "seconds": seconds, **measured}]}


def tiny_encoder(folder: Path, questions: QuestionSet) -> Path:
    """A BERT with random weights and the vocabulary of the questions."""
    library: Any = import_module("transformers")
    texts = (text for question in questions for text in (question.text, *question.texts))
    counted = Counter(word for text in texts for word in split_words(text))
    letters = [chr(code) for code in range(33, 127)]
    pieces = [*letters, *(f"##{letter}" for letter in letters)]
    known = dict.fromkeys([*pieces, *(word for word, _ in counted.most_common(2_000))])
    folder.mkdir()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *known]), encoding="utf-8")
    tokeniser = library.BertTokenizerFast.from_pretrained(folder, model_max_length=512)
    config = library.BertConfig(
        vocab_size=len(tokeniser),
        hidden_size=32,
        num_hidden_layers=DEPTHS[-1],
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        num_labels=1,
    )
    library.BertForSequenceClassification(config).save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    return folder


def cascade(folder: Path, train: Path, lists: dict[str, QuestionSet]) -> dict[str, Any]:
    """Train, export, and run at every depth and drop ratio."""
    init, trained, out = folder / "tiny", folder / "trained", folder / "cascade"
    tiny_encoder(init, some("wikiqa:train", TRAINED_ON))
    depths = ",".join(map(str, DEPTHS))
    small = ("--depths", depths, "--no-reader", "--adapt-epochs", "1")
    command("train", "cascade", "--init", init, "--adapt", train, *small, "--out", trained)
    exact = ("--precision", "float32", "--on", train, "--pairs", "20")
    command("export", trained, "--out", out, *exact)
    rows = {str(depth): f"depth={depth}" for depth in DEPTHS}
    rows |= {f"alpha {alpha}": f"alpha={alpha}" for alpha in ALPHAS}
    return {
        name: {
            row: measured(f"cascade({str(out)!r}, {option})", own) for row, option in rows.items()
        }
        for name, own in lists.items()
    }


def measured(spec: str, questions: QuestionSet) -> Sequence[float]:
    """MAP, MRR, P@1, and the share of layers computed."""
    ranker = askline.load(spec)
    done = evaluate(ranker, questions, measures="MAP,MRR,P@1")
    first = questions.questions[0]
    cost = ranker.trace(first.text, first.texts).cost
    share = cost.candidate_share if cost else 1.0
    return [*(round(value, 2) for value in done.percent.values()), round(share, 4)]


def main() -> None:
    if not os.environ.get("ASKLINE_RESULTS"):
        raise SystemExit("Set ASKLINE_RESULTS: a quick run must not overwrite the full results.")
    test = some("wikiqa:test", MEASURED_ON)
    lists = {
        "wikiqa-test": test,
        "wikiqa-test-400": some("wikiqa:test", MEASURED_ON // 4, pad=400),
        "trec-test": some("trecqa-clean:test", MEASURED_ON),
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        train = write(some("wikiqa:train", TRAINED_ON), folder / "train.jsonl")
        print(save("light_rankers", light(folder, train, test), "torch"))
        found = cascade(folder, train, lists)
        print(save("cascade_training", {"adapted": found}, "torch"))
        print(save("cascade_runs", {"test-shipped": found}, "torch"))


if __name__ == "__main__":
    main()
