"""`inferometer report RUN`: measure and judge the record of a finished run again, and write its reports anew; of a campaign
or a benchmark, write its reports anew out of its document."""

from __future__ import annotations

from pathlib import Path

import click

from inferometer.cli.command import Command
from inferometer.cli.indexing import remembered_if_kept
from inferometer.cli.outlet import tell

EXAMPLES = (
    "inferometer report runs/20260102T030405Z-run",
    "inferometer report runs/20260102T030405Z-test --redact capacity",
)


@click.command(
    "report",
    cls=Command,
    examples=EXAMPLES,
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print summary.json (campaign.json, bench.json, agentic.json) on stdout instead of the table.",
)
@click.option(
    "--redact",
    type=click.Choice(["capacity"]),
    multiple=True,
    help="Of a campaign: write a copy without these figures into the folder `shareable`. May be repeated.",
)
def command(run: Path, as_json: bool, redact: tuple[str, ...]) -> int:
    """Write summary.json, report.md and report.html of a run again, from its record; or the reports of a campaign of tests
    or of a benchmark; or print a cross-validation again. Needs no server.
    """
    from inferometer.errors import PlanError, Problem
    from inferometer.journal.documents import holds

    if holds(run, "campaign.json"):
        from inferometer.cli.terminal import show_campaign
        from inferometer.studies.campaign_runs import rewritten
        from inferometer.studies.unreported_runs import unreported_runs

        tested = rewritten(run, redact)
        show_campaign(tested.document, tested.folder, as_json=as_json, redacted=bool(redact))
        for line in unreported_runs(tested):
            tell(line)
        remembered_if_kept(run)
        return tested.exit_code
    if redact:
        raise PlanError([Problem("--redact", "is for campaigns of tests; this is none")])
    if holds(run, "bench.json"):
        from inferometer.cli.terminal import show_bench
        from inferometer.studies.bench import rewritten as rewritten_bench

        benched = rewritten_bench(run)
        show_bench(benched.document, benched.folder, as_json=as_json)
        remembered_if_kept(run)
        return benched.exit_code
    if holds(run, "agentic.json"):
        from inferometer.cli.terminal import show_agentic
        from inferometer.studies.agentic import rewritten as rewritten_agentic

        agentic = rewritten_agentic(run)
        show_agentic(agentic.document, agentic.folder, as_json=as_json)
        return agentic.exit_code
    if holds(run, "cross-validation.json"):
        from inferometer.cli.terminal import show_cross_validation
        from inferometer.studies.cross_validation import FILE, reread

        validated = reread(run)
        show_cross_validation(validated.document, run / FILE, as_json=as_json)
        return validated.exit_code
    from inferometer.cli.terminal import show
    from inferometer.journal.folder import RunFolder
    from inferometer.run.evaluate import evaluate

    code = show(evaluate(RunFolder.open(run)), as_json=as_json)
    remembered_if_kept(run)
    return code
