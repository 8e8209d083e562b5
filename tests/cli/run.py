#!/usr/bin/env python3
"""Runs the .test files of this folder, or the given ones: run.py STAGECRAFT [FILE...], from the root of the project.

    # a comment
    $ stagecraft list schedules | head -1   a shell command; stagecraft is the binary, $TMP a folder of the file's own
    > csv            Any order               a line of its output, stdout first, then stderr
    ~ csv +Any .*                            a line of output that matches a regular expression
    ...                                      any number of lines
    ? 2                                      the exit code, 0 when not given

STAGECRAFT_UPDATE_GOLDEN=1 writes what came into the files, where it differs."""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["STAGECRAFT_QUIET"] = "1"  # Notices of slow commands depend on the load of the machine.

binary = str(pathlib.Path(sys.argv[1]).resolve())
files = sys.argv[2:] or sorted(str(p) for p in pathlib.Path(__file__).parent.rglob("*.test"))
update = os.environ.get("STAGECRAFT_UPDATE_GOLDEN") == "1"
TIMEOUT = 1200 * int(os.environ.get("STAGECRAFT_TEST_PATIENCE", "1"))  # Seconds; more under a checker.


class Case:
    def __init__(self, line, command):
        self.line, self.command, self.expected, self.code = line, command, [], 0


def read(path):
    """The comments and blank lines of a file, and its cases, in order."""
    parts = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        case = parts[-1] if parts and isinstance(parts[-1], Case) else None
        if line.startswith("$ "):
            parts.append(Case(number, line[2:]))
        elif case and line.startswith("? "):
            case.code = int(line[2:])
        elif case and (line == ">" or line == "..." or line[:2] in ("> ", "~ ")):
            case.expected.append(line)
        elif not line or line.startswith("#"):
            parts.append(line)
        else:
            sys.exit(f"{path}:{number}: no such kind of line: {line}")
    return parts


def matches(expected, lines):
    """Whether the lines are what is expected; `...` takes as few as it can."""
    possible = {0}
    for line in expected:
        if line == "...":
            possible = set(range(min(possible), len(lines) + 1)) if possible else set()
            continue
        fits = lambda text: (re.fullmatch(line[2:], text) if line[0] == "~" else text == line[2:])
        possible = {i + 1 for i in possible if i < len(lines) and fits(lines[i])}
    return len(lines) in possible


def run(case, folder):
    environment = {**os.environ, "TMP": folder, "STAGECRAFT": binary, "LC_ALL": "C.UTF-8", "XDG_CACHE_HOME": f"{folder}/.cache"}
    for name in ("STAGECRAFT_PATH", "COLUMNS", "NO_COLOR"):
        environment.pop(name, None)
    script = f'stagecraft() {{ "$STAGECRAFT" "$@"; }}\n{case.command}'
    done = subprocess.run(["bash", "-c", script], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=TIMEOUT)
    text = (done.stdout + done.stderr).decode(errors="replace").replace(folder, "$TMP")
    text = re.sub("SHA-256 [0-9a-f]{16}", "SHA-256 $HASH", text)  # It depends on $TMP in a file.
    return done.returncode, text.splitlines()


def written(parts):
    lines = []
    for part in parts:
        if isinstance(part, Case):
            lines += ["$ " + part.command, *part.expected, *([f"? {part.code}"] if part.code else [])]
        else:
            lines.append(part)
    return "\n".join(lines) + "\n"


passed = failed = 0
for name in files:
    path = pathlib.Path(name)
    parts = read(path)
    with tempfile.TemporaryDirectory() as folder:
        for case in (p for p in parts if isinstance(p, Case)):
            try:
                code, lines = run(case, folder)
            except subprocess.TimeoutExpired:
                code, lines = "none", [f"(stopped after {TIMEOUT} s)"]
            if code == case.code and matches(case.expected, lines):
                passed += 1
                continue
            if update and code != "none":
                case.code, case.expected = code, ["> " + line if line else ">" for line in lines]
                passed += 1
                continue
            failed += 1
            print(f"{name}:{case.line}: $ {case.command}")
            if code != case.code:
                print(f"exit code {code}, expected {case.code}")
            got = [">" if not line else "> " + line for line in lines]
            print("\n".join(difflib.unified_diff(case.expected, got, "expected", "came", lineterm="")))
    if update and (text := written(parts)) != path.read_text():
        path.write_text(text)
        print(f"wrote {name}")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
