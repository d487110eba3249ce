"""The meters besides the GPUs': documented readings become power and energy; what vanishes, hangs, is not allowed or prints
rubbish fails with a code and a remedy within a limit of time."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest
from feeding import same_however_cut
from hypothesis import given
from hypothesis import strategies as st
from peers import Script, Seen, scripted, whole
from power_play import vector

from inferometer.errors import PlanError
from inferometer.telemetry.power import meters
from inferometer.telemetry.power.command import CommandMeter
from inferometer.telemetry.power.command_output import LARGEST
from inferometer.telemetry.power.http import HttpMeter, at_path
from inferometer.telemetry.power.ioreport import Channel, IOReportMeter, MacOSChannels
from inferometer.telemetry.power.meters import available, open_meter
from inferometer.telemetry.power.powermetrics import (
    PowermetricsMeter,
    Sample,
    command,
    documents,
    means,
    sample,
)
from inferometer.telemetry.power.rapl import RaplMeter
from inferometer.telemetry.power.readings import Meter, MeterFailed, PowerReading

BRIEF_S = 0.3
GENEROUS_S = 20.0


def code_of(fails: Callable[[], object], words: str = "") -> str:
    with pytest.raises(MeterFailed, match=words or None) as failure:
        fails()
    assert "\n" not in str(failure.value)
    return failure.value.code


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


# RAPL


def powercap(root: Path, moment: int = 0) -> Path:
    """The tree of the vectors at one moment."""
    recorded = vector("rapl")
    for name, text in {**recorded["names"], **recorded["moments"][moment]}.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_rapl_zones_become_packages_memory_and_the_machine(tmp_path: Path) -> None:
    """Microjoules become joules, with the range after which each counter wraps; mmio's copy of a package is not read."""
    meter = RaplMeter(powercap(tmp_path))
    assert meter.read() == (
        PowerReading(
            "rapl", "package", "package-0", joules=262143.32, method="counter", wraps_at=262143.32885
        ),
        PowerReading("rapl", "other", "package-0/core", joules=1e-4, method="counter", wraps_at=262143.32885),
        PowerReading(
            "rapl", "memory", "package-0", joules=2469.474853, method="counter", wraps_at=65712.999613
        ),
        PowerReading("rapl", "machine", "psys", joules=5.0, method="counter", wraps_at=262143.32885),
    )
    powercap(tmp_path, 1)
    assert [one.joules for one in meter.read()] == [94.99115, 60.0001, 2481.474853, 135.0]
    meter.close()


def test_a_machine_without_rapl_says_so(tmp_path: Path) -> None:
    """No folder, and a folder without a zone."""
    assert code_of(lambda: RaplMeter(tmp_path / "none"), "virtual machine") == "absent"
    (tmp_path / "intel-rapl").mkdir()
    assert code_of(lambda: RaplMeter(tmp_path), "modprobe intel_rapl_msr") == "absent"


def test_counters_that_only_root_may_read_name_the_chmod(tmp_path: Path) -> None:
    """The names are readable, the counters are not; a range that is not readable is unknown."""
    powercap(tmp_path)
    hidden = {"energy_uj", "max_energy_range_uj"}

    def read(path: Path) -> str:
        if path.name in hidden:
            raise PermissionError(13, "Permission denied", str(path))
        return path.read_text()

    meter = RaplMeter(tmp_path, read)
    assert code_of(meter.read, r"sudo chmod a\+r /sys/class/powercap") == "permission"
    hidden.remove("energy_uj")
    assert [one.wraps_at for one in meter.read()] == [None] * 4


@pytest.mark.parametrize("text", ["", "-1", "nan", "1e9", "12 13", "9" * 30, "\uff19"])
def test_a_counter_that_is_no_number_is_malformed(tmp_path: Path, text: str) -> None:
    """Whatever else a file holds is no reading."""
    meter = RaplMeter(powercap(tmp_path))
    (tmp_path / "intel-rapl:0" / "energy_uj").write_text(text)
    assert code_of(meter.read) == "malformed"


def test_a_zone_that_vanishes_and_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    """A driver can be unloaded in the middle of a run."""
    meter = RaplMeter(powercap(tmp_path))
    counter = tmp_path / "intel-rapl:1" / "energy_uj"
    counter.write_bytes(b"\xff\xfe")
    assert code_of(meter.read) == "malformed"
    counter.unlink()
    assert code_of(meter.read, "intel-rapl:1") == "vanished"


# A command


def test_a_command_prints_the_watts_of_the_machine() -> None:
    """One number with white space around it."""
    meter = CommandMeter(python("print(' 231.5 ')"), GENEROUS_S)
    assert meter.read() == (PowerReading("command", "machine", "0", watts=231.5),)
    meter.close()


@pytest.mark.parametrize(
    "printed",
    ["", "nan", "inf", "-3", "1e308", "231 W", "1 2", "watts", "1e7", "0x10", "1_0", "\\uff19", "\\x1b[31m5"],
)
def test_what_is_no_power_is_malformed(printed: str) -> None:
    """No number, none that is finite, or none that a machine can draw."""
    assert code_of(CommandMeter(python(f"print('{printed}')"), GENEROUS_S).read) == "malformed"


def test_a_command_that_hangs_is_ended_with_all_that_it_started() -> None:
    """The limit of time holds although a grandchild keeps the pipe open."""
    child = f"import subprocess; subprocess.run({python('import signal; signal.pause()')!r})"
    began = time.monotonic()
    assert code_of(CommandMeter(python(child), BRIEF_S).read, "0.3 s") == "timeout"
    quiet = "import os, signal; os.close(1); os.close(2); signal.pause()"
    assert code_of(CommandMeter(python(quiet), BRIEF_S).read) == "timeout"
    assert time.monotonic() - began < GENEROUS_S


def test_a_command_does_not_outlive_a_process_that_ends_in_the_midst_of_a_reading(tmp_path: Path) -> None:
    """Law: nor does what the command started."""
    noted = tmp_path / "pid"
    os.mkfifo(noted)
    shell = f"sleep 300 & echo $! > {noted}; wait"
    reader = (
        "import threading\n"
        "from inferometer.telemetry.power.command import CommandMeter\n"
        f"meter = CommandMeter(['sh', '-c', {shell!r}], timeout_s=300)\n"
        "threading.Thread(target=meter.read, daemon=True).start()\n"
        f"print(open({str(noted)!r}).read())\n"
    )
    ran = subprocess.run([sys.executable, "-c", reader], timeout=60, check=True, capture_output=True)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(ran.stdout)).wait(GENEROUS_S)


def test_a_command_that_floods_either_output_is_ended() -> None:
    """The limit of size holds for errors too."""
    for stream in ("stdout", "stderr"):
        flood = f"import sys\nwhile True: sys.{stream}.write('x' * 4096)"
        assert code_of(CommandMeter(python(flood), GENEROUS_S).read, str(LARGEST)) == "malformed"


def test_a_command_that_fails_says_what_it_printed(tmp_path: Path) -> None:
    """Its exit code and the beginning of its error; one that does not exist or may not be executed has its own code."""
    fails = "import sys; print(231); sys.exit('no\\nmeter ' + 'x' * 500)"
    assert code_of(CommandMeter(python(fails), GENEROUS_S).read, "exit code 1: no meter x+$") == "vanished"
    assert code_of(CommandMeter([str(tmp_path / "none")]).read, "there is no command") == "absent"
    plain = tmp_path / "plain"
    plain.write_text("5")
    assert code_of(CommandMeter([str(plain)]).read, "may not be executed") == "permission"
    assert code_of(CommandMeter(["a\0b"]).read) == "vanished"


def test_a_command_gets_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one of our processes as far as the environment goes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    meter = CommandMeter(python("import os; print(int('OPENAI_API_KEY' in os.environ))"), GENEROUS_S)
    assert meter.read()[0].watts == 0


# HTTP


def served(body: bytes, status: int = 200, *headers: bytes) -> Callable[[Seen], Script]:
    return lambda _: Script(whole(status, body, *headers))


@pytest.mark.parametrize("answer", vector("wall")["answers"], ids=lambda one: one["url"])
def test_documented_wall_meters_are_read(answer: dict[str, object]) -> None:
    """Shelly's two generations and Tasmota, by the path of their power; the path is not sent."""
    with scripted(served(json.dumps(answer["body"]).encode())) as peer:
        meter = HttpMeter(f"http://127.0.0.1:{peer.port}{answer['url']}")
        expected = PowerReading("http", "machine", f"127.0.0.1:{peer.port}", watts=answer["watts"])  # type: ignore[arg-type]  # of JSON
        assert meter.read() == meter.read() == (expected,)
        meter.close()
    assert [seen.target for seen in peer.seen] == [str(answer["url"]).partition("#")[0]] * 2


def test_a_bare_number_and_a_number_in_a_text_are_read() -> None:
    """Home automation writes numbers as text."""
    for body, path in ((b" 12.5\n", ""), (b'{"a.b": ["x", "12.5"]}', "#a%2Eb.1")):
        with scripted(served(body)) as peer:
            assert HttpMeter(f"http://127.0.0.1:{peer.port}/{path}").read()[0].watts == 12.5


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", ""), (b"nan", ""), (b"-1", ""), (b"1e308", ""), (b"<html>", ""), (b"\xff", ""), (b"1,5", ""),
        (b"{", "#a"), (b"[" * 100_000, "#a"), (b'{"a": null}', "#a"), (b'{"a": true}', "#a"), (b'{"b": 1}', "#a"),
        (b'{"a": NaN}', "#a"), (b'{"a": -Infinity}', "#a"), (b'{"a": 1e308}', "#a"), (b'{"a": -0.1}', "#a"),
        (b'{"a": ' + b"9" * 400 + b"}", "#a"), (b'{"a": ' + b"9" * 9000 + b"}", "#a"), (b"[1]", "#1"),
        (b"[1]", "#-1"), (b'{"a": {"b": 1}}', "#a"), (b"1" * 70_000, ""),
    ],
)  # fmt: skip
def test_an_answer_without_a_power_is_malformed(body: bytes, path: str) -> None:
    """Rubbish, numbers that are none, paths that lead nowhere, and too many bytes."""
    with scripted(served(body)) as peer:
        assert code_of(HttpMeter(f"http://127.0.0.1:{peer.port}/{path}").read) == "malformed"


def test_other_statuses_are_no_reading_and_a_redirect_is_not_followed() -> None:
    """401 names the remedy; user and password are sent and appear in no message."""
    for status, code in ((401, "permission"), (403, "permission"), (404, "vanished"), (500, "vanished")):
        with scripted(served(b"5", status)) as peer:
            meter = HttpMeter(f"http://me:s%40cret@127.0.0.1:{peer.port}/")
            remedy = "command:COMMAND" if code == "permission" else ""
            assert code_of(meter.read, rf"^http: 127.0.0.1 .*{status}.*{remedy}") == code
        assert peer.seen[0].headers["authorization"] == "Basic " + base64.b64encode(b"me:s@cret").decode()
        assert peer.seen[0].headers["host"] == f"127.0.0.1:{peer.port}"
    with scripted(served(b"", 302, b"Location: /5")) as peer:
        assert code_of(HttpMeter(f"http://127.0.0.1:{peer.port}/").read, "302") == "vanished"
    assert len(peer.seen) == 1


def test_a_wall_meter_that_hangs_or_vanishes_is_named() -> None:
    """The limit is one for the whole answer, however slowly its bytes come."""
    with scripted(lambda _: Script([b"HTTP/1.1 200 OK\r\nContent-Le"], "hang")) as peer:
        assert code_of(HttpMeter(f"http://127.0.0.1:{peer.port}/", BRIEF_S).read) == "timeout"
    with scripted(lambda _: Script([b"garbage\r\n\r\n"], "close")) as peer:
        assert code_of(HttpMeter(f"http://127.0.0.1:{peer.port}/").read) == "malformed"
    assert code_of(HttpMeter(f"http://127.0.0.1:{peer.port}/").read, "127.0.0.1") == "vanished"


JSON = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text("ab.0", max_size=2), one, max_size=3),
    max_leaves=8,
)


@given(JSON, st.lists(st.text("ab.0", max_size=2), max_size=4))
def test_a_path_never_raises(value: object, path: list[str]) -> None:
    """It leads to a member or nowhere."""
    at_path(value, path)


# powermetrics


def test_each_property_list_of_a_stream_is_a_sample() -> None:
    """However the bytes are split; milliwatts become watts."""

    def decoded(pieces: list[bytes]) -> list[tuple[float, float]]:
        left = iter([*pieces, b""])
        found = [sample(document) for document in documents(lambda: next(left))]
        return [(one.watts["gpu_power"], one.seconds) for one in found]

    stream = vector("powermetrics")["stream"].encode()
    assert same_however_cut(stream, decoded) == [
        pytest.approx(one) for one in ((0.269614, 1.003), (18.2505, 0.997))
    ]


def test_samples_are_weighted_by_their_length() -> None:
    """And a key that one of them lacks has no mean."""
    first, second = Sample({"gpu_power": 3.0, "cpu_power": 1.0}, 1.0), Sample({"gpu_power": 9.0}, 2.0)
    assert means([first, second]) == (
        PowerReading("powermetrics", "accelerator", "gpu", watts=7.0, method="mean"),
    )


def follow(*documents_: str) -> list[str]:
    """A command that writes these and then neither more nor ends."""
    text = "\0".join(documents_)
    return python(f"import sys, signal; sys.stdout.write({text!r}); sys.stdout.flush(); signal.pause()")


def test_powermetrics_repeats_its_last_sample_until_there_is_another() -> None:
    """All parts of the chip, in watts; after closing there is no reading."""
    meter = PowermetricsMeter(follow(*vector("powermetrics")["stream"].split("\0")), GENEROUS_S)
    while {one.device: one.watts for one in meter.read()}["gpu"] != 18.2505:
        pass
    assert {(one.scope, one.device): one.watts for one in meter.read()} == {
        ("package", "package"): 22.3705,
        ("accelerator", "gpu"): 18.2505,
        ("other", "cpu"): 4.12,
        ("other", "ane"): 0.0,
    }
    meter.close()
    meter.close()


def test_powermetrics_that_is_refused_ends_or_hangs_is_named() -> None:
    """The password that sudo wants, another end, silence, and a command that is not there."""
    refused = "import sys; sys.exit('sudo: a password is required')"
    assert code_of(PowermetricsMeter(python(refused), GENEROUS_S).read, "sudoers") == "permission"
    root = "import sys; sys.exit('powermetrics must be invoked as the superuser')"
    assert code_of(PowermetricsMeter(python(root), GENEROUS_S).read, "root") == "permission"
    ends = "import sys; sys.exit('unrecognized sampler: x')"
    assert code_of(PowermetricsMeter(python(ends), GENEROUS_S).read, "unrecognized") == "vanished"
    rubbish = PowermetricsMeter(python("print('<plist>x</plist>')"), GENEROUS_S)
    assert code_of(rubbish.read) == code_of(rubbish.read) == "malformed"
    silent = PowermetricsMeter(python("import signal; signal.pause()"), BRIEF_S)
    assert code_of(silent.read, "no sample") == "timeout"
    silent.close()
    assert code_of(lambda: PowermetricsMeter(["no-such-powermetrics"])) == "absent"
    assert command()[-2:] == ("-i", "1000")


@pytest.mark.parametrize(
    "program", ["pass", "import signal; print('<plist>x</plist>', flush=True); signal.pause()"]
)
def test_a_command_that_gives_no_more_samples_leaves_no_process(program: str) -> None:
    """Law: whether it has ended by itself or was given up, it is gone before the meter is closed."""
    meter = PowermetricsMeter(python(program), GENEROUS_S)
    with pytest.raises(MeterFailed):
        meter.read()
    assert not psutil.pid_exists(meter._process.pid)
    meter.close()


def test_a_sample_that_is_too_old_is_not_the_power_now() -> None:
    """A command that still runs and says nothing more is a timeout."""
    now = [0.0]
    first = vector("powermetrics")["stream"].partition("\0")[0]
    meter = PowermetricsMeter(follow(first), GENEROUS_S, lambda: now[0])
    assert meter.read() == meter.read()
    now[0] = 2 * GENEROUS_S
    assert code_of(meter.read, "no sample") == "timeout"
    meter.close()


@pytest.mark.parametrize(
    "change",
    [
        ("<integer>1003000000</integer>", "<integer>0</integer>"),
        ("<integer>1003000000</integer>", "<string>1</string>"),
        ("<key>processor</key>", "<key>processors</key>"),
        ("<real>2978.45</real>", "<real>nan</real>"),
        ("<real>2978.45</real>", "<real>-1</real>"),
        ("<real>2978.45</real>", "<real>1e300</real>"),
        ("<real>2978.45</real>", "<true/>\n<key>"),
        ("_power</key>", "_pow</key>"),
        ('encoding="UTF-8"', 'encoding="UTF-4"'),
        ("<dict>", "<array>"),
    ],
)
def test_a_property_list_without_power_is_malformed(change: tuple[str, str]) -> None:
    """Other keys, other types and numbers that are none."""
    text = vector("powermetrics")["stream"].partition("\0")[0]
    assert change[0] in text
    assert code_of(lambda: sample(text.replace(*change).encode())) == "malformed"


def test_a_stream_without_an_end_is_malformed() -> None:
    """What is kept of it has a limit."""
    assert code_of(lambda: list(documents(lambda: b"x" * (1 << 18))), "bytes") == "malformed"


# IOReport


class Listed:
    """Channels as given."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        self.channels, self.closed = channels, False

    def read(self) -> Sequence[Channel]:
        """See EnergyChannels."""
        return self.channels

    def close(self) -> None:
        """See EnergyChannels."""
        self.closed = True


@pytest.mark.parametrize(
    ("chip", "joules"),
    [
        ("m4-pro", {"gpu": 21.4, "cpu": 5.23, "ane": 0.0, "dram": 3.1}),
        ("ultra", {"gpu": 9.0, "cpu": 2.5, "ane": 0.03, "dram": 1.0}),
    ],
)
def test_ioreport_adds_up_the_channels_of_a_device(chip: str, joules: dict[str, float]) -> None:
    """Each in its own unit; cores, clusters and SRAM are parts of others."""
    channels = Listed([Channel(**one) for one in vector("ioreport")[chip]])
    meter = IOReportMeter(channels)
    found = meter.read()
    assert {one.device: one.joules for one in found} == pytest.approx(joules)
    assert {one.device: one.scope for one in found} == {
        "gpu": "accelerator", "cpu": "other", "ane": "other", "dram": "memory",
    }  # fmt: skip
    meter.close()
    assert channels.closed


def test_ioreport_with_other_units_or_channels_is_named() -> None:
    """A unit that is not known is not guessed."""
    assert code_of(IOReportMeter(Listed([Channel("GPU Energy", "kJ", 1)])).read, "'kJ'") == "malformed"
    assert code_of(IOReportMeter(Listed([Channel("GPU Energy", "mJ", -1)])).read) == "malformed"
    assert code_of(IOReportMeter(Listed([Channel("GPU", "mJ", 1)])).read) == "absent"


@pytest.mark.skipif(sys.platform == "darwin", reason="this is a Mac")
def test_ioreport_is_absent_elsewhere() -> None:
    """The library is part of macOS."""
    assert code_of(MacOSChannels, "part of macOS") == "absent"


# By name


def test_a_meter_is_opened_by_its_name(tmp_path: Path) -> None:
    """A command is split as a shell would split it, and is not run by one."""
    line = shlex.join(python("import sys; print(len(sys.argv[1:]) + 0.5)"))
    opened: Meter = open_meter(f"command:{line} 'a b' \"$HOME\" ; | &")
    assert opened.read()[0].watts == 5.5
    assert open_meter("http://127.0.0.1:9/#a").name == open_meter("https://127.0.0.1/").name == "http"
    opened.close()


@pytest.mark.parametrize(
    "spec",
    [
        "", "watts", "rapl:0", "command", "command:", "command:'", "nvml:", "nvml:x", "nvml:-1", "amdsmi:1,", "ftp://a/",
        "http://", "http:///x", "http://a:99999/", "http://[::1/", "http://a/b c", "http://bücher/", "NVML", "ioreport:1",
        "nvml:1234",
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_the_flag(spec: str) -> None:
    """What names no meter is the user's error, before anything is opened."""
    with pytest.raises(PlanError, match=r"^power\.meter: "):
        open_meter(spec, "power.meter")


def test_a_refusal_shows_no_password() -> None:
    """Of a URL that is no meter's."""
    with pytest.raises(PlanError) as failure:
        open_meter("http://me:secret@host:99999/")
    assert "secret" not in str(failure.value)


def test_what_a_machine_has_is_seen_by_cheap_signs(tmp_path: Path) -> None:
    """Device files and readable counters; nothing is opened."""
    assert available(tmp_path, "Linux") == ()
    (tmp_path / "sys/class/powercap").mkdir(parents=True)
    powercap(tmp_path / "sys/class/powercap")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    assert available(tmp_path, "Linux") == ("nvml", "rapl")
    assert available(system="Darwin")[0] == "ioreport"
    assert set(available()) <= set(meters.KNOWN.replace(",", "").split())
