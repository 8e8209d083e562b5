#!/usr/bin/env python3
"""Fails on words and forms that readers stumble over: check.py [FOLDER...], from the root of the project.

rules.tsv has the rules, allowed.tsv the exceptions with their reasons. An exception that no longer applies fails too."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
KINDS = {".cpp", ".hpp", ".cu", ".cuh", ".py", ".md", ".yaml", ".yml", ".js", ".mjs", ".css", ".html", ".test", ".txt", ".cmake", ".tsv", ".json", ".dict", ""}
CODE = {".cpp", ".hpp", ".cu", ".cuh"}
# Comments, strings, includes and numbers of C++ come first, so that only code is left for the identifiers.
TOKEN = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(?P<end>[^(\s]*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''''
                   r'''|\#[ ]*include[^\n]*|\d[\w.\']*|(?P<identifier>[A-Za-z_]\w*)''', re.DOTALL)

COMMENT = re.compile(r"^(?P<code>(?:[^\"/]|\"(?:\\.|[^\"\\])*\"|/(?!/))*?)//(?P<mark>[/!]?<?) ?(?P<text>.*)$")


def table(name):
    lines = (HERE / name).read_text().splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def tracked(folders):
    if pathlib.Path(".git").exists():
        listed = subprocess.run(["git", "ls-files", *folders], capture_output=True, text=True, check=True).stdout.splitlines()
    else:
        listed = [str(f) for start in folders or ["."] for f in sorted(pathlib.Path(start).rglob("*"))]
    left_out = {"build", "__pycache__", ".git"}
    return [f for f in listed if pathlib.Path(f).suffix in KINDS and pathlib.Path(f).is_file() and not left_out & set(pathlib.Path(f).parts)]


def comments(text):
    """Line number and text of each comment in C++; a comment over several lines is one."""
    before = None
    for number, line in enumerate(text.splitlines(), 1):
        match = COMMENT.match(line) if "//" in line else None
        if not match:
            before = None
            continue
        alone = not match["code"].strip()
        if not (before and alone and before == match["mark"]):
            yield number, match["text"]
        before = match["mark"] if alone else "<continued>" if match["mark"] == "/<" else match["mark"]
        if before == "<continued>":
            before = None


def identifiers(text):
    """The identifiers of C++, each with its line numbers."""
    lines, number, at = {}, 1, 0
    for match in TOKEN.finditer(text):
        if match["identifier"]:
            number += text.count("\n", at, match.start())
            at = match.start()
            lines.setdefault(match[0], []).append(number)
    return lines


rules = [(where, re.compile(f"(?i){pattern}" if where == "anywhere" else pattern), instead) for where, pattern, instead in table("rules.tsv")]
# Most files have none of the words that are wrong anywhere, which one look at the whole text tells.
wrong_anywhere = re.compile("|".join(f"(?:{pattern})" for where, pattern, _ in table("rules.tsv") if where == "anywhere"), re.MULTILINE)
allowed = [(file, words, reason) for file, words, reason in table("allowed.tsv")]
used = set()
problems = 0


def is_allowed(file, where, line, name, words):
    if words == "identifiers":
        return where == "identifier" and file.startswith(name)
    return name == file and (words == "*" or words in line)


def report(file, where, number, line, found, instead):
    global problems
    for k, (name, words, _) in enumerate(allowed):
        if is_allowed(file, where, line, name, words):
            used.add(k)
            return
    problems += 1
    print(f"{file}:{number}: '{found}': {instead}\n    {line.strip()[:160]}")


for file in tracked(sys.argv[1:]):
    text = pathlib.Path(file).read_text(errors="replace")
    lines = text.splitlines()
    is_code = pathlib.Path(file).suffix in CODE
    names = identifiers(text) if is_code else {}
    remarks = list(comments(text)) if is_code else []
    has_wrong = wrong_anywhere.search(text.lower())
    for where, pattern, instead in rules:
        if where == "anywhere" and has_wrong:
            for number, line in enumerate(lines, 1):
                for match in pattern.finditer(line):
                    report(file, where, number, line, match[0], instead)
        elif where == "count" and is_code and not file.startswith("tests/"):
            for number, line in enumerate(lines, 1):
                if match := pattern.search(line):
                    report(file, where, number, line, match[0], instead)
        elif where == "comment":
            for number, line in remarks:
                if match := pattern.match(line):
                    report(file, where, number, line, match[0], instead)
        elif where == "identifier":
            for name in filter(pattern.fullmatch, names):
                for number in names[name]:
                    report(file, where, number, lines[number - 1], name, instead)
if not sys.argv[1:]:
    for k, (name, words, _) in enumerate(allowed):
        if k not in used and words != "*":
            problems += 1
            print(f"allowed.tsv: '{words}' in {name} is not there any more")
print(f"{problems} problems")
sys.exit(1 if problems else 0)
