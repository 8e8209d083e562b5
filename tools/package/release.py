"""The version and the changes of a release, for all kinds of packages."""
import dataclasses
import email.utils
import os
import re
import subprocess
import time


@dataclasses.dataclass(frozen=True)
class Version:
    """`number` is 1.2.3. An unreleased state sorts before it in Debian's order and in Python's."""

    number: str
    debian: str
    python: str
    date: str  #: Of the commit, as in e-mail.
    seconds: int  #: The same since 1970.
    root: os.PathLike


def run(*words, **more):
    """Standard output of a command. It ends the program when the command fails, with what the command printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def commit(root):
    """Short name and time of the commit; a source without git has the time of CHANGELOG.md."""
    done = subprocess.run(["git", "-C", str(root), "log", "-1", "--format=%h %ct"], capture_output=True, text=True)
    if done.returncode == 0 and (root / ".git").exists():
        name, seconds = done.stdout.split()
        return name, int(seconds)
    return "source", int((root / "CHANGELOG.md").stat().st_mtime)


def version(root):
    number = re.search(r"project\(stagecraft VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]
    name, seconds = commit(root)
    day = time.strftime("%Y%m%d", time.gmtime(seconds))
    newest = re.search(r"^## (.*)$", (root / "CHANGELOG.md").read_text(), re.M)[1]
    date = email.utils.formatdate(seconds)
    if newest.startswith("Unreleased"):
        return Version(number, f"{number}~{day}.{name}", f"{number}.dev{day}+{name}", date, seconds, root)
    if not re.match(rf"{re.escape(number)}, \d{{4}}-\d\d-\d\d$", newest):
        raise SystemExit(f"CHANGELOG.md begins with '{newest}', and CMakeLists.txt has {number}; write '## {number}, YYYY-MM-DD'")
    return Version(number, number, number, date, seconds, root)
