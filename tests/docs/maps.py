#!/usr/bin/env python3
"""Every source file is on the map of its folder: maps.py, from the root of the project.

The map of a file is the README of its folder, or of the nearest folder above that has one. It names the file by its stem in
code type or as a link: `router`, `router.cpp`, `tcp/socket`. A README for several folders with a file of one stem names that
stem as often. A row of a table with the heading "file" or "in `FOLDER/`" names only files and folders that are there."""
import collections
import pathlib
import re
import subprocess
import sys

FOLDERS = ("sim", "backends", "models", "topologies", "tools")
SOURCES = {".cpp", ".hpp", ".cu", ".cuh"}


def sources():
    """The tracked sources, or all of them where there is no repository."""
    if pathlib.Path(".git").exists():
        listed = subprocess.run(["git", "ls-files", *FOLDERS], capture_output=True, text=True, check=True).stdout.splitlines()
        files = [pathlib.Path(f) for f in listed]
    else:
        files = [f for folder in FOLDERS for f in sorted(pathlib.Path(folder).rglob("*"))]
    return [f for f in files if f.suffix in SOURCES]


def map_of(file):
    return next(folder / "README.md" for folder in file.parents if (folder / "README.md").is_file())


def names_in(text):
    """What a text has in code type or as the target of a link, as paths."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    links = re.findall(r"\]\(([^)#\s]+)", text)
    codes = re.findall(r"`([^`]+)`", re.sub(r"\[`[^`]*`\]\(", "](", text))
    return [name for name in links + codes if re.fullmatch(r"[\w./*-]+", name)]


def stem_of(name):
    return name.rstrip("/").rpartition("/")[2].partition(".")[0]


def unnamed(readme, files):
    """Files that the README does not name: all of a stem that it names less often than there are folders with it."""
    named = collections.Counter(stem_of(name) for name in names_in(readme.read_text()))
    folders = collections.defaultdict(set)
    for file in files:
        folders[stem_of(file.name)].add(file.parent)
    for file in files:
        stem = stem_of(file.name)
        if named[stem] < len(folders[stem]):
            yield f"{file}: {readme} does not name `{stem}`" + (f" for each of {len(folders[stem])} folders" if named[stem] else "")


def missing(readme):
    """Names in rows for files, without a file or folder."""
    for table in re.findall(r"^\| (?:file|in `[\w/]+`) \|.*\n(?:\|.*\n?)*", readme.read_text(), re.M):
        for row in table.splitlines()[2:]:
            for name in names_in(row.split("|")[1]):
                pattern = name.rstrip("/") + ("" if "." in name or "*" in name else "*")
                if not any(readme.parent.rglob(pattern)):
                    yield f"{readme}: there is no file `{name}`"


def problems():
    files_of = collections.defaultdict(list)
    for file in sources():
        files_of[map_of(file)].append(file)
    return [p for readme, files in sorted(files_of.items()) for p in (*unnamed(readme, files), *missing(readme))]


if __name__ == "__main__":
    found = problems()
    print("\n".join(found))
    print(f"{len(found)} problems")
    sys.exit(1 if found else 0)
