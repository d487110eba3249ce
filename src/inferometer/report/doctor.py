"""The words of an examination of a machine: what was found, why it matters for a measurement, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rich.console import Console

from inferometer.documents.doctor import CheckStatus, Doctor, DoctorCheck, DoctorFinding
from inferometer.documents.note import Fact
from inferometer.report.figures import clean, figure
from inferometer.report.tables import Screen

Facts = Mapping[str, Fact]

WIDTH = 100
"""The most columns of a paragraph."""
STATUS: dict[CheckStatus, tuple[str, str]] = {
    "good": ("good", "green"),
    "note": ("note", ""),
    "mend": ("MEND", "bold yellow"),
    "unknown": ("unknown", ""),
}
"""The word of each status, and its style."""


@dataclass(frozen=True, slots=True)
class _Words:
    """Of one check. `finding` words the facts; `commands` are command lines by the operating system that has them, as
    platform.system() names it."""

    title: str
    finding: Callable[[Facts], str]
    why: str
    advice: str
    commands: Mapping[str, str] = field(default_factory=dict)


def worded(one: DoctorFinding, system: str) -> DoctorCheck:
    """A finding with its words. Only what is to be mended or noted has advice. `system`: as platform.system() names it."""
    words = WORDS[one.code]
    acts = one.status in ("mend", "note")
    return DoctorCheck(
        code=one.code,
        status=one.status,
        facts=one.facts,
        title=words.title,
        finding=words.finding(one.facts),
        why=words.why,
        advice=words.advice if acts else None,
        command=words.commands.get(system) if acts else None,
    )


def render(document: Doctor, console: Console) -> None:
    """Print it: a table of all checks, then what to do about those that need something."""
    screen = Screen(console, WIDTH)
    screen.say(_machine(document))
    console.print()
    for one in document.checks:
        word, style = STATUS[one.status]
        screen.say(f"{one.title}: {one.finding}", style, first=f"{word:9}")
    for one in document.checks:
        if one.advice is not None:
            console.print()
            screen.say(one.title, "bold")
            screen.say(one.why, first="  why  ")
            screen.say(one.advice, first="  do   ")
            if one.command is not None:
                console.print(
                    screen.text(f"       {one.command}"), soft_wrap=True
                )  # whole: it is there to be copied
    console.print()
    screen.say(_conclusion(document))


def _machine(document: Doctor) -> str:
    state = document.state
    parts = [
        state.chip or state.environment.cpu or "unknown processor",
        f"{figure(state.load.cores)} processors",
        state.os_version or "unknown system",
    ]
    return f"Machine: {', '.join(map(clean, parts))}"


def _conclusion(document: Doctor) -> str:
    unknown = sum(one.status == "unknown" for one in document.checks)
    rest = f" {unknown} could not be checked, as this system does not show them." if unknown else ""
    count = len(document.mend)
    if not count:
        return f"Nothing to mend.{rest}"
    return f"{count} of {len(document.checks)} checks found something to mend before measuring.{rest}"


def _number(facts: Facts, name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) else None


def _several(facts: Facts, name: str) -> tuple[str, ...]:
    value = facts.get(name)
    return tuple(clean(one) for one in value) if isinstance(value, tuple) else ()


def _pressure(facts: Facts) -> str:
    level, some, full = facts["level"], _number(facts, "some_percent"), _number(facts, "full_percent")
    if level is None:
        return "not shown by this system"
    if some is None:
        return f"{level}"
    if not some:
        return f"{level}; no task waited for memory in the last 10 s"
    return f"{level}; in the last 10 s some task waited {figure(some)} % of the time, all of them {figure(full)} %"


def _swap(facts: Facts) -> str:
    used, pages = _number(facts, "used_bytes"), _number(facts, "swapped_out_pages")
    size = "use not shown" if used is None else f"{figure(used / 1e6, 3)} MB in use" if used else "not in use"
    written = "" if pages is None else f", {figure(pages)} pages written to it during this examination"
    return size + written


def _thermal(facts: Facts) -> str:
    parts = []
    if facts["level"] is not None:
        parts.append(f"{facts['level']}")
    if (limit := _number(facts, "speed_limit_percent")) is not None:
        parts.append(f"processors may run at {figure(limit, 3)} % of their highest speed")
    if (total := _number(facts, "throttled_count")) is not None:
        now = _number(facts, "throttled")
        parts.append(f"slowed down {figure(total)} times since the start, {figure(now)} of them just now")
    return "; ".join(parts) or "not shown by this system"


def _governor(facts: Facts) -> str:
    governors, low, high = _several(facts, "governors"), _number(facts, "mhz_low"), _number(facts, "mhz_high")
    name = ", ".join(governors) if governors else "governor not shown by this system"
    if low is None or high is None:
        return name
    now = figure(high) if high - low < 1 else f"{figure(low)} to {figure(high)}"
    most = _number(facts, "mhz_max")
    return f"{name}; {now} MHz now" + (f", {figure(most)} at most" if most is not None else "")


def _clock(facts: Facts) -> str:
    words = {
        None: "synchronisation not shown by this system",
        True: "synchronised",
        False: "not synchronised",
    }
    synchronised = facts["synchronised"]
    text = words[synchronised if isinstance(synchronised, bool) else None]
    if (error := _number(facts, "max_error_ms")) is not None:
        text += f" to {figure(error, 3)} ms"
    step = _number(facts, "step_ms") or 0.0
    return f"{text}; during this examination it moved by {_ms(step)}"


def _descriptors(facts: Facts) -> str:
    value = _number(facts, "value")
    return "no limit" if value is None else f"{figure(value)} per process"


def _ports(facts: Facts) -> str:
    value = _number(facts, "value")
    return "not shown by this system" if value is None else f"{figure(value)} for outgoing connections"


def _engines(facts: Facts) -> str:
    running, twice = _several(facts, "running"), _several(facts, "twice")
    if not running:
        return "no engine process found"
    text = "; ".join(running)
    return f"more than one {' and '.join(twice)}: {text}" if twice else text


def _other_load(facts: Facts) -> str:
    busy, cores = _number(facts, "busy_cores") or 0.0, _number(facts, "cores") or 1.0
    text = f"other programs use {figure(busy, 2)} of {figure(cores)} processors"
    most, name = _number(facts, "busiest_cores"), facts["busiest"]
    if name is not None and most is not None and most >= 0.01:
        text += f", {clean(name)} most of all ({figure(most, 2)})"
    stolen = _number(facts, "stolen_cores")
    return text + (f"; the hypervisor took {figure(stolen, 2)}" if stolen and stolen >= 0.01 else "")


def _ms(value: float | None) -> str:
    """A duration of which what is below a microsecond is of no interest."""
    return "less than 0.001 ms" if value is not None and value < 0.001 else f"{figure(value, 2)} ms"


def _timer(facts: Facts) -> str:
    p50, p99, most = (_ms(_number(facts, name)) for name in ("p50_ms", "p99_ms", "max_ms"))
    return f"{figure(_number(facts, 'n'))} instants met late by {p50} (median), {p99} (P99), {most} (largest)"


def _stamps(facts: Facts) -> str:
    reads, stamped, wrong = (_number(facts, name) for name in ("reads", "stamped", "implausible"))
    if not stamped:
        return "no kernel stamps of received bytes on this system"
    lag = _ms(_number(facts, "lag_p50_ms"))
    text = f"{figure(stamped)} of {figure(reads)} reads have one, {lag} before the read (median)"
    return text + (f"; {figure(wrong)} cannot be right" if wrong else "")


def _everywhere(command: str) -> Mapping[str, str]:
    return {"Linux": command, "Darwin": command}


WORDS: dict[str, _Words] = {
    "memory_pressure": _Words(
        "Memory pressure",
        _pressure,
        "Tasks that wait for memory answer late: latencies include the wait, and rates fall.",
        "End programs or unload models that are not measured, or measure a smaller model.",
        {"Linux": "ps aux --sort=-rss | head", "Darwin": "ps aux -m | head"},
    ),
    "swap": _Words(
        "Swap",
        _swap,
        "Parts of the model or its cache may be on disk: the first requests read them back, and rates are the disk's.",
        "Free memory, then bring swapped pages back into it: with enough free memory, or by a restart.",
        {"Linux": "sudo swapoff -a && sudo swapon -a"},
    ),
    "thermal": _Words(
        "Heat and speed limit",
        _thermal,
        "A processor that is slowed down makes both the engine and the instrument slower, and differently in each run.",
        "Let the machine cool down and ventilate it. If it is cool, a power profile or an administrator lowered the limit.",
        {"Linux": "grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq", "Darwin": "pmset -g therm"},
    ),
    "governor": _Words(
        "Frequency governor",
        _governor,
        "A governor that saves power lowers the frequency between requests: low loads look slower than they are.",
        "Switch to the governor `performance` while measuring.",
        {"Linux": "sudo cpupower frequency-set -g performance"},
    ),
    "clock": _Words(
        "Wall clock",
        _clock,
        "Durations do not depend on it, but a step during a run makes the run INVALID (clock_step), and times of two "
        "machines cannot be compared.",
        "Start a time service and let it settle. In a container or virtual machine, the host's clock counts.",
        {"Linux": "sudo timedatectl set-ntp true", "Darwin": "sudo systemsetup -setusingnetworktime on"},
    ),
    "descriptors": _Words(
        "Open files",
        _descriptors,
        "Each connection takes a file descriptor; a request that gets none fails, and not through the server.",
        "Raise the limit for this session; the hard limit needs an administrator (limits.conf, LimitNOFILE=).",
        _everywhere("ulimit -n 65536"),
    ),
    "ports": _Words(
        "Local ports",
        _ports,
        "A closed connection holds its port for a minute: a server that closes each one exhausts them, and requests fail.",
        "Widen the range.",
        {
            "Linux": 'sudo sysctl -w net.ipv4.ip_local_port_range="15000 60999"',
            "Darwin": "sudo sysctl -w net.inet.ip.portrange.first=15000",
        },
    ),
    "engines": _Words(
        "Engines",
        _engines,
        "Two instances of one engine compete for memory and processors, and which of them answers may be unclear.",
        "Stop those that are not measured, by their process numbers.",
        _everywhere("kill PROCESS"),
    ),
    "other_load": _Words(
        "Other load",
        _other_load,
        "What others use comes and goes: it moves figures from run to run, and is taken for a difference of engines.",
        "End other programs, or measure when the machine is idle.",
        {"Linux": "ps aux --sort=-%cpu | head", "Darwin": "ps aux -r | head"},
    ),
    "timer": _Words(
        "Timer",
        _timer,
        "Requests are sent that late. P99 above a limit of 0.2 to 1 ms, by the TTFT, makes an open loop INVALID (lateness).",
        "Free the processors; on a virtual machine, reserve them. A calibration shows which loads are still measured right.",
        _everywhere("inferometer calibrate"),
    ),
    "stamps": _Words(
        "Arrival stamps",
        _stamps,
        "The kernel's stamp is the time at which a token arrived. Without it the time of reading counts, so a busy "
        "processor adds to latencies.",
        "Only Linux has these stamps: for the finest figures run the client there. Where one cannot be right, "
        "the wall clock is being moved.",
    ),
}
"""By the code of a check."""
