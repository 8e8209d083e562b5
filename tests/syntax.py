#!/usr/bin/env python3
"""Lets another compiler read every source file of a build folder: syntax.py BUILD COMPILER. Two at a time."""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

build, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
commands = [c for c in json.loads((build / "compile_commands.json").read_text()) if not c["file"].endswith(".cu")]


def read(entry):
    words = shlex.split(entry["command"])
    flags = [w for w in words if w.startswith(("-I", "-D", "-std"))]
    for i, word in enumerate(words):
        if word == "-isystem":
            flags += words[i:i + 2]
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
    done = subprocess.run([compiler, "-fsyntax-only", *warnings, *flags, entry["file"]], cwd=entry["directory"],
                          capture_output=True, text=True)
    return done.returncode, entry["file"], done.stderr


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = list(pool.map(read, commands))
failed = [r for r in results if r[0]]
for _, file, text in failed:
    print(f"{file}:\n{text}")
print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
sys.exit(1 if failed or not results else 0)
