"""An app with a codec, for a worker: handlers in threads, in processes and on the loop."""

import logging
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tenure import AsyncJob, Job, Tenure
from tenure.config import DEFAULTS

KEY = bytes(range(32))


class AesGcm:
    """The codec of the guide: the first key seals, every key opens."""

    def __init__(self, *keys: bytes) -> None:
        self._keys = [AESGCM(key) for key in keys]

    def seal(self, data: bytes, *, task: str, field: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._keys[0].encrypt(nonce, data, f"{task}\0{field}".encode())

    def open(self, data: bytes, *, task: str, field: str) -> bytes:
        about = f"{task}\0{field}".encode()
        for key in self._keys[:-1]:
            try:
                return key.decrypt(data[:12], data[12:], about)
            except Exception:  # noqa: BLE001, S112 - the next key may open it
                continue
        return self._keys[-1].decrypt(data[:12], data[12:], about)


app = Tenure(
    os.environ.get("TENURE_DATABASE_URL"), codec=AesGcm(KEY), defaults=DEFAULTS.scaled(0.1)
)


def _report(job: Job, word: str) -> str:
    logging.getLogger("shop").warning("log of %s", word)
    if job.attempt == 1:
        job.progress(cursor=word, items={"first": word})
        raise ValueError(f"error about {word}")
    return f"{job.cursor} again"


@app.task(name="in_thread")
def in_thread(job: Job, word: str) -> str:
    return _report(job, word)


@app.task(name="in_process", process=True)
def in_process(job: Job, word: str) -> str:
    return _report(job, word)


@app.task(name="on_loop")
async def on_loop(job: AsyncJob, word: str) -> str:
    job.enqueue(in_process.bind(word))
    return word
