"""An append-only stream as far as it can be read. A process that was killed leaves it without its end mark, in the middle of
a batch for the most part; a disk that lost power, or damage, leaves it cut anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from inferometer.errors import file_error
from inferometer.journal.versions import check_unpacked
from inferometer.whole_file import check_regular

END_MARK = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Of a stream that was closed: a message without length (Arrow's IPC format, "end of stream")."""


class StreamBatches:
    """The whole batches of a stream: iterate once, for where each begins and ends, and the batch.

    `schema`: the stream's; None: it was cut off in its header. `whole`: every batch up to the end mark has been given.
    """

    def __init__(self, path: Path) -> None:
        """Open the stream. Raises RecordError for what is none, and OSError."""
        check_regular(path)
        check_unpacked(path)
        self.whole = False
        self.schema: pa.Schema | None = None
        self._source = pa.OSFile(str(path))
        try:
            self._reader = pa.ipc.open_stream(self._source)
            self.schema = self._reader.schema
        except pa.ArrowInvalid:
            self._source.close()
        except (pa.ArrowException, OSError) as cause:
            self._source.close()
            raise file_error(f"{path.name}: damaged ({cause})", cause) from cause

    def __iter__(self) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        if self.schema is None:
            return
        with self._source:
            while True:
                at = self._source.tell()
                try:
                    batch = self._reader.read_next_batch()
                    batch.validate(full=True)  # an offset that points elsewhere would be followed
                except StopIteration:
                    self.whole = self._source.size() - at == len(END_MARK)
                    return
                except pa.ArrowException:
                    return  # cut off in mid-batch
                except OSError as cause:
                    if cause.errno is None:  # the same, in other words of Arrow's
                        return
                    raise  # the disk's: what follows may well be there
                yield at, self._source.tell(), batch
