#!/usr/bin/env python3
"""Installs a build elsewhere and uses what came of it as others would: run.py BUILD COMPILER, from the root of the project.

The program from any folder, completion, the page of the manual, a consumer by CMake and by pkg-config, the
Python module, a Debian package."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

build, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
consumer = pathlib.Path("tests/install/consumer").resolve()
scenario = "examples/quickstart"
with_simgrid = (build / "lib/stagecraft").is_dir()  # The module that calls SimGrid, which programs load.


def out(*words, folder=None, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=folder, env={**os.environ, **more})
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def check_program(prefix, folder):
    """It finds its own files, from any folder; the makespan of one of them."""
    program = prefix / "bin/stagecraft"
    first = out(program, "list", "scenarios", folder=folder).splitlines()[0]
    assert f"{prefix.relative_to(folder)}/share/stagecraft/scenarios" in first, first
    facts = json.loads(out(program, "run", scenario, "--set", "run.micro_batches=8", "--backend", "ideal", "--format", "json",
                           folder=folder))
    if with_simgrid:
        with_links = json.loads(out(program, "run", scenario, "--set", "run.micro_batches=8", "--backend", "simgrid",
                                    "--format", "json", folder=folder))
        assert with_links["makespan_s"] >= facts["makespan_s"] * (1 - 1e-9), with_links["makespan_s"]
    return facts["makespan_s"]


def check_editor_lines(prefix):
    """The schema that the first line of each installed file names to editors is installed too."""
    start = "# yaml-language-server: $schema="
    files = sorted((prefix / "share/stagecraft").rglob("*.yaml"))
    assert files
    for file in files:
        first = file.read_text().splitlines()[0]
        assert first.startswith(start), f"{file}: {first}"
        schema = file.parent / first.removeprefix(start)
        assert json.loads(schema.read_text())["title"].startswith("stagecraft "), schema


def check_consumers(prefix, folder, makespan):
    data = prefix / "share/stagecraft/scenarios/examples/quickstart.yaml"
    out("cmake", "-S", consumer, "-B", folder / "c", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}")
    out("cmake", "--build", folder / "c")
    found = next(prefix.rglob("stagecraft.pc")).parent
    flags = out("pkg-config", "--cflags", "--libs", "stagecraft", PKG_CONFIG_PATH=found).split()
    own = os.environ.get("CXXFLAGS", "").split()
    out(compiler, "-std=c++20", *own, consumer / "main.cpp", *flags, "-o", folder / "p")
    for program in (folder / "c/consumer", folder / "p"):
        assert float(out(program, data, folder=folder)) == makespan, f"{program} computes another makespan"
        if with_simgrid:
            assert float(out(program, data, "simgrid", folder=folder)) >= makespan * (1 - 1e-9), program


def check_python(prefix, folder, makespan):
    """The module finds the program that is installed with it; numbers need no NumPy."""
    module = next(prefix.rglob("stagecraft/__init__.py")).parents[1]
    question = f'import stagecraft; print(stagecraft.run("{scenario}", backend="ideal", sets={{"run.micro_batches": 8}}).makespan)'
    environment = {"PYTHONPATH": str(module), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", "STAGECRAFT": ""}
    assert float(out(sys.executable, "-c", question, folder=folder, **environment)) == makespan


def check_pages(prefix):
    bash = prefix / "share/bash-completion/completions/stagecraft"
    words = f"source {bash}; COMP_WORDS=(stagecraft run --back); COMP_CWORD=2; _stagecraft; echo ${{COMPREPLY[@]}}"
    assert out("bash", "-c", words).split() == ["--backend"]
    page = next(prefix.rglob("stagecraft.1*"))
    if shutil.which("groff"):
        assert not subprocess.run(["groff", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True).stderr
    if shutil.which("fish"):
        out("fish", "--no-execute", prefix / "share/fish/vendor_completions.d/stagecraft.fish")
    if shutil.which("zsh"):
        out("zsh", "-n", prefix / "share/zsh/vendor-completions/_stagecraft")


def check_debian_package(folder, makespan):
    if not shutil.which("dpkg-shlibdeps"):
        return print("SKIPPED the Debian package: there is no dpkg-shlibdeps; apt install dpkg-dev")
    out(sys.executable, "tools/package/build", folder / "deb", "--build", build, "--only", "deb", "--fast", PYTHONDONTWRITEBYTECODE="1")
    for package in (folder / "deb").glob("*.deb"):
        if package.name.startswith("stagecraft_"):
            depends = out("dpkg-deb", "--field", package, "Depends")
            assert "libyaml-cpp" in depends and "libc6" in depends, depends
        out("dpkg-deb", "--extract", package, folder / "root")
    assert check_program(folder / "root/usr", folder) == makespan
    check_python(folder / "root/usr", folder, makespan)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    out("cmake", "--install", build, "--prefix", folder / "prefix")
    makespan = check_program(folder / "prefix", folder)
    check_pages(folder / "prefix")
    check_editor_lines(folder / "prefix")
    check_consumers(folder / "prefix", folder, makespan)
    check_python(folder / "prefix", folder, makespan)
    check_debian_package(folder, makespan)
print("installed, used by CMake and by pkg-config, packed")
