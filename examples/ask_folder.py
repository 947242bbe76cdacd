"""
Ask a folder: index the files of a folder and answer questions with the place of each answer.

    python examples/ask_folder.py [FOLDER]

The default folder is `examples/handbook`. `Corpus.open(DIR)` in place of `in_memory` keeps the
index on disk, so that the next run reads changed files only.
"""

import sys
from pathlib import Path

import askline

HANDBOOK = Path(__file__).parent / "handbook"
QUESTIONS = [
    "How long are books lent?",
    "When does the library close in winter?",
    "What does a color page cost?",
    "Who founded the library?",
]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HANDBOOK
    corpus = askline.Corpus.in_memory()
    report = corpus.add(folder)
    print(f"{report.added} files, {report.sentences} sentences\n")
    for question in QUESTIONS:
        answers = corpus.ask(question, top_k=1)
        best = answers.best
        print(f"? {question}")
        if best is None or not answers.answered:
            print(f"  No answer. The closest sentence: {best.text if best else 'none'}\n")
            continue
        phrase = f" “{best.phrase.text}”" if best.phrase else ""
        print(f"  {best.text}\n  {best.probability:.0%}{phrase} – {best.place}, {best.heading}\n")


if __name__ == "__main__":
    main()
