#!/usr/bin/env python3
"""Builds the sdist and the wheel without network and uses them: wheel.py STAGECRAFT."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

program = pathlib.Path(sys.argv[1]).resolve()
root = pathlib.Path(__file__).resolve().parents[2]
for module, package in (("pip", "pip"), ("venv", "venv"), ("setuptools", "setuptools"), ("wheel", "wheel")):
    if importlib.util.find_spec(module) is None:
        print(f"SKIPPED: there is no Python package {module}; apt install python3-{package}")
        sys.exit(77)


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment_in(folder, *words):
    """A new environment, and the words for pip that installs there: one that is in it takes seconds to unpack."""
    run(sys.executable, "-m", "venv", "--without-pip", *words, folder)
    return folder / "bin/python", (sys.executable, "-m", "pip", "--python", folder / "bin/python")


QUESTION = """
import stagecraft, pathlib
print(pathlib.Path(stagecraft.__file__).parent)
print(stagecraft.run("examples/quickstart", backend="ideal").period)
"""

FIVE_LINES = """
import stagecraft as sc
run = sc.run("examples/quickstart", backend="ideal")
print(run.period)
print(run.headline())
print(sc.compare("examples/quickstart", schedules=["gpipe"]))
"""

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    source = folder / "source"
    shutil.copytree(root / "tools/python", source, ignore=shutil.ignore_patterns("notebooks", "__pycache__"))
    run(sys.executable, "-c", "import setuptools.build_meta as b; b.build_sdist('dist')", cwd=source)
    sdist = next((source / "dist").glob("*.tar.gz"))
    run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", folder / "wheels", sdist)
    wheel = next((folder / "wheels").glob("*.whl"))
    assert wheel.name.endswith("-py3-none-any.whl"), wheel.name
    files = {pathlib.PurePath(file).name for file in zipfile.ZipFile(wheel).namelist()}
    ours = {path.name for path in (root / "tools/python/stagecraft").iterdir() if path.is_file()}
    assert ours <= files, ours - files
    # --system-site-packages: NumPy is there, and needs no network.
    python, pip = environment_in(folder / "env", "--system-site-packages")
    run(*pip, "install", "--no-index", "--no-deps", wheel)
    environment = {key: value for key, value in os.environ.items() if key not in ("STAGECRAFT", "PYTHONPATH")}
    answer = run(python, "-c", QUESTION, cwd=folder, env={**environment, "STAGECRAFT": str(program)}).splitlines()
    assert answer[0].startswith(str(folder / "env/lib")), answer
    # An empty environment: no NumPy, and five lines.
    empty, pip = environment_in(folder / "empty")
    run(*pip, "install", "--no-index", wheel)
    assert run(*pip, "list", "--format", "freeze").count("==") == 1
    lines = run(empty, "-I", "-c", FIVE_LINES, cwd=folder, env={**environment, "STAGECRAFT": str(program)}).splitlines()
    assert lines[0] == answer[1] and "period" in lines[1] and "gpipe" in "".join(lines), lines
    on_path = {**environment, "PATH": f"{program.parent}:{environment['PATH']}"}
    assert run(python, "-c", QUESTION, cwd=folder, env=on_path).splitlines() == answer
    print(f"{wheel.name} works in a new environment: period {answer[1]} s")
