"""
RAG: retrieve chunks, let askline choose the sentences that answer, and build a prompt from them.

    python examples/rag.py

The retrieval here is a few lines over the files of a folder; yours may be a vector store. askline
ranks the sentences of the retrieved chunks in their context. The prompt has only what answers, with
sources. If nothing reaches the threshold, no model has to be asked.
"""

from pathlib import Path

import askline
from askline.text.sentences import split_sentences
from askline.text.words import split_words

HANDBOOK = Path(__file__).parent / "handbook"


def read_chunks() -> list[askline.Passage]:
    """Every paragraph; the title says where it comes from."""
    chunks = []
    for file in sorted(HANDBOOK.glob("*.md")):
        heading = ""
        for block in file.read_text("utf-8").split("\n\n"):
            if block.startswith("#"):
                heading = block.strip("# \n")
            else:
                sentences = [block[start:end] for start, end in split_sentences(block)]
                chunks.append(askline.Passage(sentences, title=f"{file.name}, {heading}"))
    return chunks


def retrieve(question: str, chunks: list[askline.Passage], count: int) -> list[askline.Passage]:
    """The chunks that share most words with the question."""
    asked = set(split_words(question.lower()))

    def shared(chunk: askline.Passage) -> int:
        return len(asked & set(split_words(" ".join((chunk.title, *chunk.sentences)).lower())))

    return sorted(chunks, key=shared, reverse=True)[:count]


def main() -> None:
    ranker, chunks = askline.load(), read_chunks()
    for question in ("How much is the fee for a late book?", "Is there a cinema?"):
        hits = ranker.rank(question, retrieve(question, chunks, count=5), top_k=3)
        found = [hit for hit in hits if hit.probability >= ranker.threshold]
        print(f"=== {question}")
        if not found:
            print("No answer in the handbook: there is nothing to ask a model.\n")
            continue
        print("Answer the question from these sentences, and cite their numbers.\n")
        for number, hit in enumerate(found, start=1):
            print(f"[{number}] {hit.text} ({hit.document.title})")
        print(f"\nQuestion: {question}\n")


if __name__ == "__main__":
    main()
