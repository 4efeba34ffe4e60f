"""`python -m bench.peers [name …]`: install the peers; print what there is and what is not."""

from __future__ import annotations

import json
import subprocess
import sys

from bench.peers.environments import Unavailable, peers


def main() -> None:
    for peer in peers(sys.argv[1:] or None):
        if isinstance(peer, Unavailable):
            print(f"{peer.name:16} {'-':9} unavailable: {peer.reason}")
            continue
        done = subprocess.run(
            [*peer.command, "about"], capture_output=True, text=True, timeout=60, check=True
        )
        about = json.loads(done.stdout.splitlines()[-1])
        print(f"{about['name']:16} {about['version']:9} {about['mode']}; keeps {about['keeps']}")


if __name__ == "__main__":
    main()
