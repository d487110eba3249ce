"""The command `inferometer`: finds the command's file, and turns every error into words and an exit code.

| exit | meaning                                        |
| ---- | ---------------------------------------------- |
| 0    | done, and the result is VALID                  |
| 2    | the command line or the plan cannot be carried out |
| 3    | the result is INVALID                          |
| 4    | the result is INCONCLUSIVE                     |
| 5    | the server cannot be reached, or failed at everything |
| 6    | compare, history check: a regression           |
| 70   | our bug                                        |
| 71   | this machine ran out of disk, memory, files... |
| 130  | interrupted; what was measured is saved        |
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; never returns and never shows a traceback for a user's or a server's fault."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    from inferometer.cli.process import carry_out

    sys.exit(carry_out(arguments, own_outputs=argv is None))
