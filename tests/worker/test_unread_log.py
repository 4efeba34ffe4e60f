"""Logging a line never waits for a reader of stderr (rule 17)."""

import os
import threading

from tenure._log import LogWriter


def test_a_thread_that_logs_does_not_wait_for_the_reader() -> None:
    read_end, write_end = os.pipe()
    writer = LogWriter(write_end)

    def log() -> None:
        # More than a pipe holds.
        for _ in range(200):
            writer.put(f"{'x' * 1000}\n", own=True)

    thread = threading.Thread(target=log, daemon=True)
    thread.start()
    thread.join(5)
    waits = thread.is_alive()
    # Without a reader each write fails at once: everything ends.
    os.close(read_end)
    thread.join(5)
    assert writer.flush(5)
    os.close(write_end)

    assert not waits
