"""
Rerank a list: put search results in order of how well they answer a question.

    python examples/rerank.py

The documents are dictionaries, as a search engine returns them. `hit.document` is the caller's own
dictionary, and `hit.probability` says how likely it is that the text answers the question.
"""

import askline

RESULTS = [
    {"id": 31, "text": "The library card is valid for one year."},
    {"id": 7, "text": "Books are lent for four weeks, and films for one week."},
    {"id": 12, "text": "How long the library will keep its old building is not known."},
    {"id": 54, "text": "The book sale takes place in May."},
    {"id": 40, "text": "A loan can be renewed twice, unless somebody else has reserved the item."},
]


def main() -> None:
    ranker = askline.load()
    for question in ("How long can I keep a book?", "Who designed the building?"):
        print(question)
        hits = ranker.rank(question, RESULTS, top_k=3)
        for rank, hit in enumerate(hits, start=1):
            print(f"  {rank}. {hit.probability:6.1%}  id {hit.document['id']:<3} {hit.text}")
        if hits[0].probability < ranker.threshold:
            print(f"  The best one is below the threshold of {ranker.threshold:.0%}: no answer.")


if __name__ == "__main__":
    main()
