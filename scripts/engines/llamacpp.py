"""llama.cpp's server, built from the source package of `llama-cpp-python`, which vendors it.

The build is for any x86-64 machine with AVX2 (or any arm64 one), not for this machine alone, so that a cached
build may move. Without TLS, web page and downloads nothing but a compiler is needed. The C++ is compiled with
-O1, which saves compile time; the model is so small that no kernel matters. A broken-off build goes on where it
stopped; the sources and objects (500 MB) are removed at the end.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from scripts.engines.environments import TOOLS, install, uv_program
from scripts.engines.places import (
    CONSTRAINTS,
    ENGINES,
    LLAMA_SERVER,
    SetupError,
    is_stamped,
    key_of,
    run,
    write_stamp,
)

OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DGGML_NATIVE=OFF",
    "-DGGML_CCACHE=OFF",
    "-DLLAMA_BUILD_SERVER=ON",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)


def build() -> None:
    """Build `llama-server`, unless its stamp says it stands. Errors: SetupError."""
    requirement = CONSTRAINTS / "llamacpp.txt"
    key = key_of(requirement, repr(OPTIONS))
    if is_stamped("llamacpp", key) and LLAMA_SERVER.is_file():
        return
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        raise SetupError(
            "llama.cpp is built from source, and there is no C++ compiler here (c++, g++, clang++)."
        )
    install(TOOLS)
    work = ENGINES / "llamacpp-build"
    source = unpacked_source(work, requirement, key)
    tools = TOOLS.path / "bin"
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    objects = work / "objects"
    run([tools / "cmake", "-S", source, "-B", objects, "-G", "Ninja", *OPTIONS], env=env)
    run([tools / "cmake", "--build", objects, "--target", "llama-server"], env=env)
    LLAMA_SERVER.parent.mkdir(exist_ok=True)
    shutil.copy2(objects / "bin" / "llama-server", LLAMA_SERVER)
    shutil.copy2(source / "LICENSE", LLAMA_SERVER.parent)
    run([LLAMA_SERVER, "--version"])
    write_stamp("llamacpp", key)
    shutil.rmtree(work)


def unpacked_source(work: Path, requirement: Path, key: str) -> Path:
    """Directory of llama.cpp's sources below `work`, fetched unless an earlier try left them there."""
    marker = work / "unpacked"
    if not marker.is_file() or marker.read_text() != key:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        python = uv_program().with_name("python")
        download = ["download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-python", "--require-hashes"]
        run([python, "-m", "pip", *download, "--requirement", requirement, "--dest", work])
        [archive] = work.glob("llama_cpp_python-*.tar.gz")
        with tarfile.open(archive) as tar:
            tar.extractall(work, filter="data")
        archive.unlink()
        marker.write_text(key)
    [source] = work.glob("llama_cpp_python-*/vendor/llama.cpp")
    return source
