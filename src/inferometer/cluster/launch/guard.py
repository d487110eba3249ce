"""The shell script around every load host, here, over ssh and on a node of Ray. It needs only a POSIX `sh`.

| its standard input     | what it does                                                                            |
| ---------------------- | --------------------------------------------------------------------------------------- |
| the first line         | is the token: goes into the environment of the load host, so into no argument           |
| ends                   | the load host gets SIGTERM, and SIGKILL 5 s later: whoever started it has gone, or closed |

Its exit code is the load host's. The process that waits for the input to end is another one than the process that waits
for the load host, so a host does not outlive its launcher where the latter is killed.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from inferometer.cluster.launch.interface import TOKEN_VARIABLE

GRACE_S = 5
END_S = GRACE_S + 3.0
"""Within this after its input has ended, a script has ended too."""

# One line without !, backslashes and single quotes: login shells other than sh take it as it is, between single quotes.
GUARD = (
    f"IFS= read -r {TOKEN_VARIABLE} || exit 2; export {TOKEN_VARIABLE}; "
    "exec 3<&0 </dev/null; "
    '"$@" 3<&- & host=$!; '
    "{ while read -r line; do :; done <&3; "
    f"kill -TERM $host; sleep {GRACE_S}; kill -KILL $host; }} >/dev/null 2>&1 & watch=$!; "
    "exec 3<&-; wait $host; code=$?; kill $watch 2>/dev/null; exit $code"
)


def guarded(command: Sequence[str]) -> list[str]:
    """The words that start a command inside the script."""
    return ["sh", "-c", GUARD, "sh", *command]


def guarded_line(command: Sequence[str]) -> str:
    """The same as one line, for the login shell of another machine."""
    return "exec " + shlex.join(guarded(command))
