"""
A batch over Parquet: rank the candidates of every row, and write a new file with the results.

    pip install '.[arrow]'
    python examples/parquet_batch.py

Rows are read, ranked and written in small batches, so the file may be larger than the memory. The
command `askline rank --requests FILE.parquet --out FILE.parquet` does the same, and goes on where
a stopped run ended.
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from askline.integrations.arrow import rank_table

RESERVE = "Reserve a book on our site; we keep it at the desk for a week."
QUESTIONS = {
    "How do I reserve a book?": ["Books are on three floors.", RESERVE],
    "Is the library open on Sunday?": [
        "It is closed on Mondays.",
        "Open on Sunday from ten to four.",
    ],
    "What does a lost card cost?": ["A lost card is replaced for five euros.", "Cards are blue."],
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "questions.parquet"), Path(folder, "ranked.parquet")
        columns = {"question": list(QUESTIONS), "documents": list(QUESTIONS.values())}
        pq.write_table(pa.table(columns), source)

        with pq.ParquetFile(source) as file:
            rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(1_024))
            ranked = rank_table(rows, top_k=1)
            with pq.ParquetWriter(target, ranked.schema) as writer:
                for batch in ranked:
                    writer.write_batch(batch)

        for row in pq.read_table(target).to_pylist():
            print(f"{row['question']}\n  {row['best_score']:.0%}  {row['best_text']}")


if __name__ == "__main__":
    main()
