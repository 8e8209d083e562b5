#!/usr/bin/env python3
"""Lets the compiler of a build folder read every source file that was not compiled there: syntax.py BUILD."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

build = pathlib.Path(sys.argv[1])


def is_compiled(entry):
    words = shlex.split(entry["command"])
    target = pathlib.Path(entry["directory"], words[words.index("-o") + 1])
    return target.exists() and target.stat().st_mtime >= os.stat(entry["file"]).st_mtime


def read(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    done = subprocess.run([*words[:at], "-fsyntax-only", entry["file"]], cwd=entry["directory"], capture_output=True, text=True)
    return done.returncode, entry["file"], done.stderr


commands = [c for c in json.loads((build / "compile_commands.json").read_text()) if not c["file"].endswith(".cu")]
left = [c for c in commands if not is_compiled(c)]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    failed = [r for r in pool.map(read, left) if r[0]]
for _, file, text in failed:
    print(f"{file}:\n{text}")
print(f"{len(commands) - len(left)} were compiled, {len(left) - len(failed)} passed, {len(failed)} failed")
sys.exit(1 if failed or not commands else 0)
