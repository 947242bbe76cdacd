"""
Rank a folder of Parquet files on Spark, into another folder.

    python examples/spark_rank.py

ranks a few questions of its own. With your own folders, and settings that use all cores:

    export PYSPARK_PYTHON=$(which python)
    spark-submit --master 'local[2,4]' \
        --conf spark.sql.files.openCostInBytes=0 \
        --conf spark.sql.files.maxPartitionBytes=4m \
        --conf spark.sql.execution.arrow.maxRecordsPerBatch=1000 \
        examples/spark_rank.py questions/ ranked/

The input has the columns `id`, `question` and `documents` (a list of texts). After a failure, run
the same command again: files that are complete are kept.
"""

import os
import sys
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from askline.integrations.arrow import BatchRanker
from askline.integrations.spark import write_parquet

PARTITIONS = 4
TEXTS = ["Books are lent for four weeks.", "A lost card costs five euros.", "It opens at nine."]
QUESTIONS = ["How long can I keep a book?", "What does a lost card cost?"]


def rank(questions: DataFrame, folder: str) -> None:
    write_parquet(questions, BatchRanker("cosinet"), folder, key="id", partitions=PARTITIONS)
    for row in questions.sparkSession.read.parquet(folder).orderBy("id").take(5):
        print(f"{row['id']}: {row['best_score']:.2f} {row['best_text']}")


def main(*folders: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName("askline").getOrCreate()
    if folders:
        source, target = folders
        rank(spark.read.parquet(source), target)
    else:
        rows = [(number, question, TEXTS) for number, question in enumerate(QUESTIONS)]
        with TemporaryDirectory() as place:
            schema = "id int, question string, documents array<string>"
            rank(spark.createDataFrame(rows, schema), f"{place}/ranked")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
