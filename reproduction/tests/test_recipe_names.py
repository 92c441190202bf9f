"""A recipe's name gives the variant of a record, the recipe it is compared with, and the change."""

import pytest

from report.records import fake_record
from reproduction.runs import base_of, base_variant, change_of


@pytest.mark.parametrize(
    ("recipe", "base", "variant", "change"),
    [
        ("sudoku/unique", "sudoku/unique", "", ""),
        ("sudoku/unique/large-batch", "sudoku/unique/large-batch", "large-batch", ""),
        ("sudoku/unique-180k/large-batch", "sudoku/unique-180k/large-batch", "180k/large-batch", ""),
        ("sudoku/unique/table-2", "sudoku/unique/table-2", "table-2", ""),
        ("sudoku/unique/table-2/180k", "sudoku/unique/table-2", "table-2", "180k"),
        ("sudoku/unique/tuning/decay=1e-4", "sudoku/unique/table-2", "table-2", "decay=1e-4"),
        ("sudoku/unique/equivariant/listed-1", "sudoku/unique/equivariant", "equivariant", "listed-1"),
    ],
)
def test_names(recipe, base, variant, change):
    record = fake_record(recipe, 42, {})
    assert (base_of(record), base_variant(record), change_of(record)) == (base, variant, change)
