"""The sentences of the checks of clocks: this machine's own, and those of load hosts."""

from __future__ import annotations

from inferometer.report.server_check_sentences import Wording

CLOCKS = {
    "clock_step": Wording(
        "Clock",
        "ms",
        {
            "pass": "The wall clock moved {value} against the monotonic clock; up to {limit} is accepted.",
            "fail": "The wall clock moved {value} against the monotonic clock, more than the accepted {limit}: kernel time "
            "stamps are off by as much.",
            "unsure": "The wall clock moved {value} against the monotonic clock, more than {limit}: the machine was suspended, "
            "or its clock was set. Latencies leave out the time of a suspension.",
            "na": "The clocks were not compared.",
        },
        {
            "unsure": "Keep the machine from being suspended, then run again.",
            "fail": "Let the time service settle (chronyc tracking, ntpq -p), keep the machine from being suspended, then run "
            "again.",
        },
    ),
    "host_clocks": Wording(
        "Clocks of the load hosts",
        "ms",
        {
            "pass": "The load hosts' clocks agree to within {value}; up to {limit} is accepted.",
            "fail": "An instant of a load host may be off by {value} against the other hosts; up to {limit} is accepted.",
            "fail unknown": "Nothing is known of a load host's clock.",
            "na": "One machine sent the load.",
        },
        {
            "fail": "Give the hosts a shorter or quieter way to the conductor, which stays open to UDP, keep their clocks from "
            "being set, then run again."
        },
        {
            (
                "worst",
                "round_trip_ms",
                "probes",
            ): "Least certain: {worst}, whose shortest round trip of {probes} took {round_trip_ms} ms.",
            ("stepped",): "Set, or suspended, during the run: {stepped}.",
            ("unknown",): "Never compared: {unknown}.",
            (
                "uncompared",
            ): "Not compared for a part of the load, in which it could have been set: {uncompared}.",
            ("fast", "drift_ppm"): "At another rate than the conductor's: {fast}.",
        },
    ),
    "host_lateness": Wording(
        "Lateness of the load hosts",
        "ms",
        {
            "pass": "The latest load host sent 99 % of its requests within {value} of the time planned; up to {limit} is "
            "accepted.",
            "fail": "A load host sent 1 % of its requests more than {value} later than planned; up to {limit} is accepted.",
            "na": "Not judged by host.",
        },
        {"fail": "Look at that host (load of others, power saving), or leave it out (--hosts)."},
        {("worst",): "Latest: {worst}.", ("hosts", "each_ms"): "P99 by host ({hosts}): {each_ms} ms."},
    ),
}
