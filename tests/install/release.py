#!/usr/bin/env python3
"""tools/release in a small new repository, where what builds and tests is a stand-in: release.py, from the root of the project.

It refuses what it has to, does nothing with --dry-run, tags nothing when a step fails, and leaves a tag and checksums else."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
if not shutil.which("git"):
    print("SKIPPED: there is no program git; apt install git")
    sys.exit(77)
VERSION = re.search(r"project\(stagecraft VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())[1]
TAG = f"v{VERSION}"
STEP = '#!/bin/sh\nset -e\ncd "$(dirname "$0")"/{up}\necho "{name} $*" >> build/steps\n'  # Each stand-in writes that it ran.
BUILD = 'mkdir -p "$1"\necho deb > "$1"/stagecraft.deb\necho page > "$1"/playground.html\n'


class Clone:
    """A repository with the files that tools/release reads, and nothing that takes time."""

    def __init__(self, folder):
        self.folder, self.out = folder / "clone", folder / "out"
        for name in ("CMakeLists.txt", "CHANGELOG.md", "CITATION.cff", ".gitignore", "tools/python/pyproject.toml", "tools/release", "tools/package/release.py"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, self.folder / name)
        (self.folder / "build").mkdir()
        self.write_step("tools/setup")
        self.write_step("tools/package/build", BUILD)
        self.write_step("tools/test")
        self.edit("CHANGELOG.md", r"^## .*$", f"## {VERSION}, 2030-01-31")
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words):
        who = ["-c", "user.name=A tester", "-c", "user.email=tester@example.org"]
        return subprocess.run(["git", *who, *words], cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "A state")

    def write_step(self, name, more=""):
        file = self.folder / name
        file.write_text(STEP.format(name=name, up="../" * (name.count("/") - 1) + "..") + more)
        file.chmod(0o755)

    def edit(self, name, pattern, text):
        file = self.folder / name
        changed = re.sub(pattern, text, file.read_text(), count=1, flags=re.M)
        assert changed != file.read_text(), (name, pattern)
        file.write_text(changed)

    def steps(self):
        file = self.folder / "build/steps"
        return file.read_text().splitlines() if file.exists() else []

    def release(self, *words, version=VERSION, out=None):
        self.git("config", "user.name", "A tester")  # An annotated tag has who made it.
        self.git("config", "user.email", "tester@example.org")
        return subprocess.run([sys.executable, self.folder / "tools/release", version, out or self.out, *words], capture_output=True, text=True)

    def refuses(self, pattern, **more):
        """With and without --dry-run, before any step."""
        tags, ran = self.git("tag"), self.steps()
        for words in ([], ["--dry-run"]):
            done = self.release(*words, **more)
            assert done.returncode == 1 and re.search(pattern, done.stderr), (pattern, done)
        assert self.git("tag") == tags and self.steps() == ran

    def fails(self, pattern):
        """After its steps began; there is neither a tag nor a list of checksums."""
        done = self.release()
        assert done.returncode == 1 and re.search(pattern, done.stderr), (pattern, done)
        assert not self.git("tag") and not (self.out / "SHA256SUMS").exists()
        shutil.rmtree(self.out, ignore_errors=True)


def check_refusals(clone):
    clone.refuses(r"CMakeLists.txt has the version .*\n.*pyproject.toml has .*\n.*CITATION.cff has .*\n.*write '## 9.8.7, YYYY-MM-DD'", version="9.8.7")
    for name, pattern, text in (("CMakeLists.txt", rf"VERSION {VERSION}", "VERSION 9.9.9"), ("CITATION.cff", r"^version: .*", "version: 9.9.9"),
                                ("CHANGELOG.md", r"^## .*$", f"## Unreleased: {VERSION}, soon"), ("CHANGELOG.md", r"^## .*$", f"## {VERSION}")):
        clone.edit(name, pattern, text)
        clone.refuses(rf"the tree has changes; commit .*\n.*M {name}")
        clone.commit()
        clone.refuses(rf"{name} (has the version 9.9.9; write {VERSION}|begins with '.*'; write '## {VERSION}, YYYY-MM-DD')")
        clone.git("reset", "--quiet", "--hard", "HEAD~1")
    (clone.folder / "new.txt").write_text("not in the commit\n")
    clone.refuses(r"the tree has changes; commit .*\n\?\? new.txt")
    (clone.folder / "new.txt").unlink()
    clone.refuses("is in the tree, which would then have changes", out=clone.folder / "packages")
    clone.out.mkdir()
    (clone.out / "old.deb").write_text("of another release\n")
    clone.refuses("is not an empty folder")
    shutil.rmtree(clone.out)
    clone.git("tag", TAG)
    clone.refuses(rf"there is a tag {TAG} already, for the commit [0-9a-f]+; choose another version")
    clone.git("tag", "--delete", TAG)


def check_dry_run(clone):
    done = clone.release("--dry-run")
    commands = ["tools/setup full", "tools/setup wasm", f"tools/package/build {clone.out}", "tools/test full", f"git -C {clone.folder} tag --annotate v{VERSION}"]
    assert done.returncode == 0 and [said.startswith(command) for said, command in zip(done.stdout.splitlines(), commands)] == [True] * 5, done
    assert not clone.steps() and not clone.out.exists() and not clone.git("tag")


def check_failures(clone):
    for name, more, pattern in (("tools/test", "exit 3\n", "tools/test full ended with 3; nothing was tagged"),
                                ("tools/package/build", 'mkdir -p "$1"\necho deb > "$1"/stagecraft.deb\n', "the playground was not built")):
        clone.write_step(name, more)
        clone.commit()
        clone.fails(pattern)
        clone.git("reset", "--quiet", "--hard", "HEAD~1")
    clone.write_step("tools/test", "echo changed >> CITATION.cff\n")  # A user works in the tree meanwhile.
    clone.commit()
    clone.fails(r"the tree is no longer that of [0-9a-f]+; nothing was tagged\n M CITATION.cff")
    clone.git("reset", "--quiet", "--hard", "HEAD~1")


def check_release(clone):
    (clone.folder / "build/steps").unlink()
    commit = clone.git("rev-parse", "HEAD")
    done = clone.release()
    assert done.returncode == 0 and f"git push origin v{VERSION}" in done.stdout, done
    assert clone.steps() == ["tools/setup full", "tools/setup wasm", f"tools/package/build {clone.out}", "tools/test full"], clone.steps()
    assert clone.git("tag") == TAG and clone.git("cat-file", "-t", TAG) == "tag" and clone.git("rev-list", "--max-count=1", TAG) == commit
    checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=clone.out, capture_output=True, text=True)
    assert checked.returncode == 0 and checked.stdout == "playground.html: OK\nstagecraft.deb: OK\n", checked


with tempfile.TemporaryDirectory() as name:
    clone = Clone(pathlib.Path(name).resolve())
    check_refusals(clone)
    check_dry_run(clone)
    check_failures(clone)
    check_release(clone)
print("what disagrees is refused, a failure leaves no tag, and a release has its tag and checksums")
