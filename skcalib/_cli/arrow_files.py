"""Parquet and Arrow files, read by pyarrow if it is there."""

import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

_PARQUET, _ARROW_FILE, _ARROW_STREAM = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"


def is_arrow(file: Any) -> bool:
    """Whether the file begins like one of Parquet or Arrow."""
    return file.peek(8).startswith((_PARQUET, _ARROW_FILE, _ARROW_STREAM))


def arrow_batches(file: Any, name: str, wanted: Sequence[str]) -> Iterator[Any]:
    """Tables or record batches of pyarrow with the wanted columns and perhaps others.

    The first one is empty and has all columns, so that the reader can judge their names.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            f"{name} is a Parquet or Arrow file, which pyarrow reads. Please install it "
            "(pip install pyarrow), or write the table as CSV."
        ) from error
    start = file.peek(8)
    if not start.startswith(_ARROW_STREAM):
        file = _seekable(file)
    try:
        if start.startswith(_PARQUET):
            found = parquet.ParquetFile(file)
            schema, batches = found.schema_arrow, found.iter_batches(columns=list(wanted))
        elif start.startswith(_ARROW_FILE):
            opened = pyarrow.ipc.open_file(file)
            schema = opened.schema
            batches = map(opened.get_batch, range(opened.num_record_batches))
        else:
            opened = pyarrow.ipc.open_stream(file)
            schema, batches = opened.schema, iter(opened)
        yield schema.empty_table()
        yield from batches
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{name} is not a sound Parquet or Arrow file: {error}.") from error


def _seekable(file: BinaryIO) -> BinaryIO:
    return file if file.seekable() else io.BytesIO(file.read())


def texts_of(batch: Any, name: str) -> list[str]:
    """A column as texts that Python reads as the same values; a missing value is ""."""
    import pyarrow

    column = batch.column(batch.schema.names.index(name))
    try:
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        texts = column.cast(pyarrow.string()).to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"Column {name!r} must hold numbers or texts; found the type {column.type}."
        ) from error
    return ["" if text is None else text for text in texts]
