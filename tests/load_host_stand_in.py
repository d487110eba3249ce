"""A program in place of `inferometer worker`, for tests of what starts one: it writes how it was started, and ends as told.

    python load_host_stand_in.py FOLDER [--exit CODE] [--say TEXT] [--chatter BYTES] [--stay] [--deaf] --join ... --name NAME

It writes FOLDER/NAME.json: its arguments, the token, the variables of its environment, what stands in its input; `signal`, once
it was ended by SIGTERM, which a deaf one ignores.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType


def main() -> None:
    """Do all that the arguments say."""
    words = sys.argv[1:]
    option = {one: words[index + 1] for index, one in enumerate(words[:-1]) if one.startswith("--")}
    path = Path(words[0], f"{option['--name']}.json")
    facts = {
        "arguments": words[words.index("--join") :],
        "token": os.environ.get("INFEROMETER_JOIN_TOKEN"),
        "variables": sorted(os.environ),
        "input": sys.stdin.read(),
        "pid": os.getpid(),
    }

    def ended(number: int, _: FrameType | None) -> None:
        if "--deaf" not in words:
            keep({**facts, "signal": signal.Signals(number).name})
            os._exit(0)

    def keep(known: dict[str, object]) -> None:
        part = path.with_suffix(".part")
        part.write_text(json.dumps(known))
        part.replace(path)

    signal.signal(signal.SIGTERM, ended)
    sys.stderr.write(
        "x" * 79 + "\n" if "--chatter" not in words else ("x" * 79 + "\n") * (int(option["--chatter"]) // 80)
    )
    print(option.get("--say", "done"), flush=True)
    keep(facts)
    while "--stay" in words:
        time.sleep(0.05)
    sys.exit(int(option.get("--exit", "0")))


if __name__ == "__main__":
    main()
