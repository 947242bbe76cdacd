"""
Train Cosinet, a small ranker, on questions of your own in a few seconds on a CPU.

    pip install '.[train]'
    python examples/train_cosinet.py

"How heavy is the Kestrel?" is answered by "The Kestrel weighs 12 kg.", which a ranker that counts
words cannot know. The products of the dev set are not in the training set. The trained model runs
without torch.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import askline
from askline.data import write_jsonl
from askline.evaluation import evaluate
from askline.types import Candidate, Question, QuestionSet

TRAIN = ["Kestrel", "Heron", "Plover", "Avocet", "Dunlin", "Curlew", "Godwit", "Turnstone"]
DEV = ["Siskin", "Linnet", "Serin", "Brambling"]
FACTS = {  # question -> answer
    "How heavy is the {}?": "The {} weighs {} kg.",
    "What does the {} cost?": "You can order the {} for {} euros.",
    "How long does the battery of the {} last?": "The {} runs for {} hours without its cable.",
    "Who makes the {}?": "The {} comes from a workshop with {} people in Ghent.",
    "When did the {} come out?": "The {} went on sale in the spring of 20{}.",
    "Can I use the {} in the rain?": "Water does not harm the {}, even at {} cm below the surface.",
}


def make_set(name: str, products: list[str], seed: int) -> QuestionSet:
    """One question per product and fact; all facts of the product are its candidates."""
    choose, questions = random.Random(seed), []
    for product in products:
        texts = [answer.format(product, choose.randint(10, 30)) for answer in FACTS.values()]
        for right, question in enumerate(FACTS):
            order = choose.sample(range(len(texts)), len(texts))
            listed = [Candidate(str(at), texts[at], at == right) for at in order]
            number, text = str(len(questions)), question.format(product)
            questions.append(Question(number, text, tuple(listed)))
    return QuestionSet(name, tuple(questions))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        write_jsonl(make_set("train", TRAIN, seed=1), Path(name, "train.jsonl"))
        command = ["train", "cosinet", "--on", "train.jsonl", "--epochs", "8", "--out", "mine"]
        print("askline", *command, flush=True)
        subprocess.run([sys.executable, "-m", "askline", *command], cwd=name, check=True)
        for spec in ("bm25", "cosinet", f"cosinet('{name}/mine')"):
            found = evaluate(askline.load(spec), make_set("dev", DEV, seed=2), measures="P@1")
            print(f"{spec.replace(name + '/', ''):16} P@1 {found.percent['P@1']:5.1f} %")


if __name__ == "__main__":
    main()
