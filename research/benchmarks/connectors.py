"""
The corpus's own search beside PostgreSQL's through its connector, on the same paragraphs.

    python -m research.benchmarks.connectors 'postgresql://user@host/database' --write

Creates and drops a table `askline_benchmark` in that database. The questions are those of the
first set; the paragraphs of all sets are the texts. Writes research/results/connectors.json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from askline.corpus import Connector, Corpus, RetrievedSentence, Retriever, connect
from askline.evaluation import markdown_table

from .common import save
from .corpus_answers import Asked, first_right, milliseconds, shares
from .corpus_library import Library, library

SETS = [
    "squadshifts/new_wiki_v1.0.json",
    "squadshifts/reddit_v1.0.json",
    "squadshifts/amazon_reviews_v1.0.json",
    "squad/train-800-contexts.json",
]
AT = (1, 5, 20, 100)
TABLE = "askline_benchmark"


def measured(name: str, retriever: Retriever, questions: Library) -> dict[str, Any]:
    asked = []
    for question, gold, _ in questions.questions:
        start = time.perf_counter()
        found: Sequence[RetrievedSentence] = retriever.retrieve(question, max(AT))
        asked.append(Asked(first_right(found, gold), time.perf_counter() - start))
    times = milliseconds([each.seconds for each in asked])
    return {"retrieval": name, **shares(asked, AT, "recall"), **times}


def filled(url: str, texts: dict[str, str]) -> Connector:
    """A table with a `tsvector` column and an index on it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {TABLE}")
        connection.execute(
            f"CREATE TABLE {TABLE} (id text PRIMARY KEY, body text, found tsvector "
            "GENERATED ALWAYS AS (to_tsvector('english', body)) STORED)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {TABLE} VALUES (%s, %s)", list(texts.items()))
        connection.execute(f"CREATE INDEX ON {TABLE} USING gin (found)")
        connection.execute(f"ANALYZE {TABLE}")
    joint = "&" if "?" in url else "?"
    return connect(f"{url}{joint}table={TABLE}&search=found&language=english")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="save the figures to research/results")
    given = parser.parse_args()
    first = library(given.sets[0], given.questions)
    texts = dict(first.documents)
    for name in given.sets[1:]:
        texts |= {f"{name} {key}": text for key, text in library(name).documents.items()}
    with Corpus.in_memory(ranker=None) as corpus:
        corpus.add(texts)
        rows = [measured("the corpus's own", corpus.retriever(), first)]
    server = filled(given.url, texts)
    rows.append(measured("postgresql", server, first))
    server.close()
    with psycopg.connect(given.url, autocommit=True) as connection:
        connection.execute(f"DROP TABLE {TABLE}")
    print(f"{len(texts):,} texts, {len(first.questions)} questions of {given.sets[0]}\n")
    print(markdown_table(list(rows[0]), [list(row.values()) for row in rows]))
    if given.write:
        figures = {"sets": given.sets, "texts": len(texts), "recall": rows}
        print(f"\nSaved to {save('connectors', figures, 'psycopg', 'tantivy')}")


if __name__ == "__main__":
    main()
