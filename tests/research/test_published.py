"""Published tables are complete, and every row is mapped to a figure or to a reason."""

from __future__ import annotations

import pytest

from research.runs import RUNS
from research.tables import Published, papers, published
from research.tables.report_rows import TABLE_MAPPINGS
from research.tables.row_mapping import Absent, Measured

TABLES = published()
IDS = [table.id for table in TABLES]


@pytest.mark.parametrize("table", TABLES, ids=IDS)
def test_rows_have_a_value_for_every_measure(table: Published) -> None:
    assert table.paper in papers()
    for row in table.rows:
        assert len(row.values) == len(row.deviations) == len(table.measures), row.name


@pytest.mark.parametrize("table", TABLES, ids=IDS)
def test_every_row_is_mapped_to_a_figure_or_to_a_reason(table: Published) -> None:
    mapping = TABLE_MAPPINGS[table.id]
    assert list(mapping.rows) == [row.name for row in table.rows] or set(mapping.rows) == {
        row.name for row in table.rows
    }
    for name, source in mapping.rows.items():
        if isinstance(source, Absent):
            assert source.reason
            continue
        assert len(source.paths) == len(table.measures), name
        assert set((source.run or mapping.run).split()) <= RUNS.keys(), name


def test_no_mapping_is_left_over() -> None:
    assert set(TABLE_MAPPINGS) == set(IDS)


def test_extras_fit_their_table() -> None:
    for table in TABLES:
        for extra in TABLE_MAPPINGS[table.id].extras:
            assert isinstance(extra.source, Measured)
            assert len(extra.source.paths) == len(table.measures), (table.id, extra.name)


@pytest.mark.parametrize(
    ("table", "row", "values"),
    [
        ("cosinet-4", "Cosinet list + BiRNN", (75.62, 77.13, 1_120_000, 8.9)),
        ("cosinet-5", "CA list + BiRNN", (86.32, 92.05, 4_870_000, 1_710)),
        ("cascade-2", "CT 12 layers", (89.9, 91.0, 92.4, 96.7)),
        ("cascade-3", "CT α 0.3", (65.3, 65.3, 52.9, 65.3, -37)),
        ("sequential-5", "BERT-base after CA", (52.8, 0.924)),
        ("report", "BiLSTM", (67.4, 61.69)),
        ("phrases-2", "EfficientQA", (74.9, 83.1)),
    ],
)
def test_figures_agree_with_the_papers(table: str, row: str, values: tuple[float, ...]) -> None:
    own = next(each for each in TABLES if each.id == table)
    assert next(each for each in own.rows if each.name == row).values == values
