"""
Fine-tune Cosinet, the small ranker that ships with askline, on questions of your own.

    pip install '.[train]'
    python examples/fine_tune_cosinet.py

products.json has six facts and five questions for each. "Who makes the Kestrel?" shares only a name
with its answer, "The Kestrel comes from a workshop with 12 people in Ghent." How people ask about
such facts is learned from 96 questions, in seconds on a CPU. The dev set asks about other products
in other words. The fine-tuned model runs without torch.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import askline
from askline.data import write_jsonl
from askline.evaluation import evaluate
from askline.types import Candidate, Question, QuestionSet

FACTS = json.loads((Path(__file__).parent / "products.json").read_text("utf-8"))
TRAIN, DEV = ["Kestrel", "Heron", "Plover", "Avocet"], ["Siskin", "Linnet", "Serin", "Twite"]


def make_set(name: str, products: list[str], wordings: slice) -> QuestionSet:
    """Questions about each product; all facts of the product are the candidates of each."""
    choose, questions = random.Random(name), []
    for product in products:
        texts = [answer.format(product, choose.randint(10, 26)) for answer in FACTS]
        for right, asked in enumerate(FACTS.values()):
            for wording in asked[wordings]:
                order = choose.sample(range(len(texts)), len(texts))
                listed = tuple(Candidate(str(at), texts[at], at == right) for at in order)
                questions.append(Question(str(len(questions)), wording.format(product), listed))
    return QuestionSet(name, tuple(questions))


def main() -> None:
    dev = make_set("dev", DEV, slice(4, 5))
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(make_set("train", TRAIN, slice(4)), f"{folder}/train.jsonl")
        command = ["train", "cosinet", "--init", "cosinet", "--on", "train.jsonl", "--out", "mine"]
        print("askline", *command, flush=True)
        subprocess.run([sys.executable, "-m", "askline", *command], cwd=folder, check=True)
        for spec in ("bm25", "cosinet", f"cosinet('{folder}/mine')"):
            found = evaluate(askline.load(spec), dev, measures="P@1")
            print(f"{spec.replace(folder + '/', ''):16} P@1 {found.percent['P@1']:5.1f} %")


if __name__ == "__main__":
    main()
