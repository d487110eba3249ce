"""What a sealed run left of its sessions, read for checks and summary: steps.arrow, the schedule, the record's texts."""

from __future__ import annotations

import pyarrow as pa

from inferometer.errors import RecordError
from inferometer.journal import steps
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule, asked
from inferometer.journal.seal import record_parts
from inferometer.journal.versions import check_unpacked
from inferometer.judge.session_checks import NO_SESSIONS, SessionEvidence
from inferometer.measure.agent_sessions import agent_sessions
from inferometer.measure.measurement import Window
from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.measure.sent_bodies import COLUMNS, SentBodies, has_bodies, sent_bodies
from inferometer.measure.session_steps import ASKED, NONE, StepGraph, session_runs
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload


def session_evidence(
    folder: RunFolder,
    plan: Plan,
    record: Record,
    samples: Samples,
    window: Window,
    block_tokens: int | None = None,
) -> SessionEvidence:
    """See the head. `block_tokens`: of the engine's prefix cache, if that is known. A folder without its schedule, as of an
    archive, has none of it. Raises RecordError."""
    if not record.session.valid.any() or not folder.schedule.is_file():
        return NO_SESSIONS
    if not folder.steps.is_file():
        if isinstance(plan.workload, SessionsWorkload):
            raise RecordError(
                f"{folder.steps}: is missing: nothing tells how the steps of the sessions hang together"
            )
        return SessionEvidence(bodies=_bodies(folder, plan, None))
    graph = _graph(folder, plan)
    runs = session_runs(graph, record)
    bodies = _bodies(folder, plan, graph)
    return SessionEvidence(runs, agent_sessions(runs, samples, window, block_tokens), bodies)


def _graph(folder: RunFolder, plan: Plan) -> StepGraph:
    server_replies = plan.workload.replies == "server"
    schedule = asked(folder.schedule, ASKED)
    return StepGraph.from_tables(steps.read(folder.steps), schedule, server_replies=server_replies)


def _bodies(folder: RunFolder, plan: Plan, graph: StepGraph | None) -> SentBodies | None:
    """None where nothing on record says what was sent, as in records of earlier versions."""
    if not has_bodies(record_parts(folder.record, ["body_crc"])):
        return None
    check_unpacked(folder.schedule)
    extends: dict[int, int] | None = None
    if graph is not None:
        going_on = graph.extends != NONE
        before = graph.index[graph.extends[going_on]]
        extends = dict(zip(graph.index[going_on].tolist(), before.tolist(), strict=True))
    try:
        return sent_bodies(
            Schedule(folder.schedule),
            extends,
            record_parts(folder.record, COLUMNS),
            streamed=bool(plan.target.stream),
        )
    except pa.ArrowInvalid as cause:
        raise RecordError(f"{folder.schedule}: damaged ({cause})") from cause
