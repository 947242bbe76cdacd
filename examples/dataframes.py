"""
Columns of pandas and polars: one call ranks the candidates of all rows.

    pip install '.[arrow]' pandas polars
    python examples/dataframes.py

`rank_table` reads a DataFrame through Arrow, without a copy, and adds columns to it. The same call
takes relations of DuckDB and tables of pyarrow. The model is loaded once per process.
"""

import pandas as pd
import polars as pl

from askline.integrations.arrow import rank_table

ROWS = {
    "ticket": [101, 102, 103],
    "question": [
        "How do I reset my password?",
        "When will my parcel arrive?",
        "Can I pay by invoice?",
    ],
    "documents": [
        ["Passwords have twelve characters.", "Choose “Forgot password” to get a reset link."],
        ["Parcels arrive two days after they are sent.", "A parcel may weigh 30 kg."],
        ["Your invoice has a number.", "Companies can pay by invoice within 30 days."],
    ],
}


def main() -> None:
    frame = pd.DataFrame(ROWS)
    ranked = rank_table(frame).read_pandas()
    print("pandas, the best text of each row:")
    for row in ranked.itertuples():
        print(f"  {row.ticket}  {row.best_score:4.0%}  {row.best_text}")

    table = pl.DataFrame(rank_table(pl.DataFrame(ROWS), top_k=1))
    sure = table.filter(pl.col("best_score") > 0.7).select("ticket", "best_text")
    print(f"polars, {len(sure)} of {len(table)} rows with a score above 70 %:")
    for ticket, text in sure.iter_rows():
        print(f"  {ticket}  {text}")


if __name__ == "__main__":
    main()
