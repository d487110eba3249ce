"""Tables as CSV and as Parquet.

| in a cell                                                | CSV                                     | Parquet        |
| -------------------------------------------------------- | --------------------------------------- | -------------- |
| null: undefined, unknown, not reached                    | nothing between the commas              | null           |
| an empty text                                            | `""`                                    | an empty text  |
| a text that begins with `=`, `+`, `-`, `@` or a tab      | a `'` in front: no spreadsheet runs it  | as it is       |
| unprintable characters of a server's text                | dropped                                 | dropped        |
| a list                                                   | its JSON                                | a list         |
| true and false                                           | `true`, `false`                         | booleans       |

A column's name ends in the unit of its numbers, and each row has the marks of its run. A Parquet file describes its columns in
their metadata.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from inferometer.exports.exported_run import Marks
from inferometer.printable import FORMULA, printable, printable_lines


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type, and what it says."""

    name: str
    type: pa.DataType
    means: str

    @property
    def field(self) -> pa.Field:
        """As Arrow has it, with its meaning."""
        return pa.field(self.name, self.type, metadata={"description": self.means})


MARKS = (
    Column("run", pa.string(), "id of the run"),
    Column(
        "verdict", pa.string(), "`VALID`, `INVALID` or `INCONCLUSIVE`: whether the figures may be believed"
    ),
    Column(
        "verdict_reasons",
        pa.string(),
        "codes of the checks that decided against VALID, with blanks between them",
    ),
    Column("simulated", pa.bool_(), "whether no server was measured, but a model of one"),
)
"""The first columns of each table."""


def marked(rows: pa.Table, marks: Marks) -> pa.Table:
    """The rows with the marks of their run in front, the same in each."""
    values: Sequence[str | bool] = (marks.run, marks.verdict, " ".join(marks.reasons), marks.simulated)
    for place, (column, value) in enumerate(zip(MARKS, values, strict=True)):
        cells = pa.repeat(pa.scalar(value, column.type), len(rows))
        rows = rows.add_column(place, column.field, cells)
    return rows


def clean(cells: pa.ChunkedArray) -> pa.Array:
    """Names and messages of others without unprintable characters; each that occurs is looked at once."""
    encoded = cells.combine_chunks().dictionary_encode()
    words = pa.array([printable(word) for word in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def clean_text(cells: pa.ChunkedArray) -> pa.Array:
    """The same of texts of several lines, whose breaks stay."""
    return pa.array([None if one is None else printable_lines(one) for one in cells.to_pylist()], pa.string())


def to_csv(rows: pa.Table) -> bytes:
    """The table as CSV (RFC 4180, UTF-8, a header line); texts cannot begin a formula."""
    for place, field in enumerate(rows.schema):
        column = rows.column(place)
        if pa.types.is_list(field.type):
            texts = [None if one is None else json.dumps(one) for one in column.to_pylist()]
            rows = rows.set_column(place, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_string(field.type):
            rows = rows.set_column(place, field.name, _no_formula(column))
    written = io.BytesIO()
    pcsv.write_csv(rows, written)
    return written.getvalue()


def _no_formula(column: pa.ChunkedArray) -> pa.ChunkedArray:
    begins = pc.match_substring_regex(column, FORMULA)
    return pc.if_else(begins, pc.binary_join_element_wise("'", column, ""), column)


def to_parquet(rows: pa.Table, marks: Marks) -> bytes:
    """The table as Parquet, with the marks in the file's metadata too."""
    about = {
        "inferometer.run": marks.run,
        "inferometer.verdict": marks.verdict,
        "inferometer.reasons": " ".join(marks.reasons),
        "inferometer.simulated": str(marks.simulated).lower(),
    }
    written = io.BytesIO()
    pq.write_table(rows.replace_schema_metadata(about), written, compression="zstd")
    return written.getvalue()
