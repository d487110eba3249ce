"""What stands behind a server's interfaces: the engine, the fixed script, or a compound system on the engine."""

from __future__ import annotations

import dataclasses

from inferometer.server.answers import Answer
from inferometer.server.clock import wall_offset
from inferometer.server.engine.engine import Engine
from inferometer.server.fixed_script import Metronome
from inferometer.server.model_loading import Residence
from inferometer.server.options import Options
from inferometer.server.systems.step_log import StepLog
from inferometer.server.systems.system_routes import System


def engine_of(options: Options) -> tuple[Engine[Answer] | Metronome[Answer] | System, Residence]:
    """The engine, and whether its model is there. Loading is the residence's: the engine never waits for it itself. Raises
    OSError where the file of spans cannot be opened."""
    there = not (options.cold or options.load_at_start)
    if options.beat is not None:
        return Metronome(options.beat, options.seed), Residence(options.load_ns, loaded=there)
    settings = options.engine
    load_ns = options.load_ns or round(settings.load_ns)
    residence = Residence(load_ns, loaded=settings.preloaded and there)
    ready = dataclasses.replace(settings, preloaded=True)
    if options.system is None:
        return Engine(ready, options.seed), residence
    log = StepLog(options.system, options.model, options.spans, wall_offset)
    return System(options.system, ready, options.system_settings, options.seed, log), residence
