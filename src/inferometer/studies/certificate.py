"""Which certificate a run on this machine cites: the newest that fits machine, software, transport and number of workers."""

from __future__ import annotations

import os
import time

from inferometer.calibration import certificate as certificates
from inferometer.documents.certificate import CertificateLookup
from inferometer.plan.schema import Plan
from inferometer.telemetry.host import environment, hot_path


def cited_certificate(plan: Plan) -> CertificateLookup:
    """What a run of this plan cites."""
    machine, folder = certificates.machine_of(environment()), certificates.folder(os.environ)
    workers, transport = plan.instrument.workers, plan.target.transport
    now = time.time()
    return certificates.cited(certificates.find(folder, machine, hot_path(), workers, transport, now))
