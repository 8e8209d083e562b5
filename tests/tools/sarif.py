#!/usr/bin/env python3
"""Logs of `check --format sarif` keep to SARIF 2.1.0: sarif.py STAGECRAFT, from the root of the project.

The rules that such a log can break are restated here from the standard (OASIS, 2020), with its sections: the properties that
each object may and must have, their types and values, and references between objects. A log that breaks one is found."""
import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

program = str(pathlib.Path(sys.argv[1]).resolve())
RIGHT = "schema: scenario/2\nmodel: gpt2-small\ncluster: two-node-mixed\nplan: {planner: balanced, stages: 2}\nrun: {schedule: 1f1b, micro_batches: 4}\n"

# Objects: property -> (type or object, must be there). Arrays are lists with one element. Other properties are not allowed.
URI = re.compile(r"([a-z][a-z0-9+.-]*:)?(//[^/?#]*)?([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
TEXT = {"text": ("text", True)}  # 3.11 message
REGION = {"startLine": ("one or more", True), "startColumn": ("one or more", False)}  # 3.30
PLACE = {"artifactLocation": ({"uri": ("uri", True)}, True), "region": (REGION, False)}  # 3.29, 3.4
RULE = {"id": ("text", True)}  # 3.49 reportingDescriptor
DRIVER = {"name": ("text", True), "semanticVersion": ("version", False), "informationUri": ("uri", False), "rules": ([RULE], False)}  # 3.19
RESULT = {"ruleId": ("text", False), "level": ("level", False), "message": (TEXT, True), "locations": ([{"physicalLocation": (PLACE, False)}], False)}
RUN = {"tool": ({"driver": (DRIVER, True)}, True), "columnKind": ("column kind", False), "results": ([RESULT], False)}  # 3.14
LOG = {"version": ("2.1.0", True), "$schema": ("uri", False), "runs": ([RUN], True)}  # 3.13
VALUES = {
    "text": lambda value: isinstance(value, str) and value != "",
    "uri": lambda value: isinstance(value, str) and URI.fullmatch(value),
    "one or more": lambda value: type(value) is int and value >= 1,
    "version": lambda value: re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", value),
    "level": lambda value: value in ("none", "note", "warning", "error"),
    "column kind": lambda value: value in ("utf16CodeUnits", "unicodeCodePoints"),
    "2.1.0": lambda value: value == "2.1.0",
}


def form_problems(value, form, path="log"):
    if isinstance(form, str):
        return [] if VALUES[form](value) else [f"{path}: {value!r} is no {form}"]
    if isinstance(form, list):
        if not isinstance(value, list):
            return [f"{path} is no array"]
        return [problem for number, item in enumerate(value) for problem in form_problems(item, form[0], f"{path}[{number}]")]
    if not isinstance(value, dict):
        return [f"{path} is no object"]
    found = [f"{path} has no {name}" for name, (_, required) in form.items() if required and name not in value]
    found += [f"{path}.{name} is not in the standard" for name in value if name not in form]
    return found + [p for name in value if name in form for p in form_problems(value[name], form[name][0], f"{path}.{name}")]


def reference_problems(log):
    found = []
    for run in log["runs"]:
        rules = [rule["id"] for rule in run["tool"]["driver"].get("rules", [])]
        if len(set(rules)) != len(rules):
            found.append("a rule is there twice (3.19.23)")
        for result in run.get("results", []):
            if rules and result["ruleId"] not in rules:
                found.append(f"{result['ruleId']} is no rule (3.27.5)")
            for place in result.get("locations", []):
                region = place["physicalLocation"].get("region", {})
                if "startColumn" in region and "columnKind" not in run:
                    found.append("columns are counted in no unit that is said (3.14.17)")
    return found


def problems_of(log):
    return form_problems(log, LOG) or reference_problems(log)


def log_of(*files, code=2):
    done = subprocess.run([program, "check", "--format", "sarif", *map(str, files)], capture_output=True)
    assert done.returncode == code, (files, done.returncode, done.stderr)
    log = json.loads(done.stdout.decode())  # UTF-8, 3.1
    assert problems_of(log) == [], (files, problems_of(log))
    return log


def region_of(log):
    return log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]


def check_logs(folder):
    every = [file for file in sorted(pathlib.Path("tests/cli/bad").glob("*.yaml"))]
    logs = [log_of(file, code=code_of(file)) for file in every]
    together = log_of(*every)  # A wrong input counts more than one that cannot be done.
    assert len(together["runs"][0]["results"]) == sum(len(log["runs"][0]["results"]) for log in logs) >= len(every) - 3
    right = folder / "right.yaml"
    right.write_text(RIGHT)
    assert log_of(right, code=0)["runs"][0]["results"] == []
    # Names and texts that need escapes; a column after a letter of two code units of UTF-16.
    strange = folder / "a b%ü#?.yaml"
    strange.write_text(RIGHT.replace("stages: 2", "x-\U0001d11e: 1, stagse: 2"))
    place = region_of(log_of(strange))
    assert place["artifactLocation"]["uri"].endswith("/a%20b%25%C3%BC%23%3F.yaml"), place
    column = strange.read_text().splitlines()[3].index("stagse") + 1  # Python counts code points.
    assert place["region"] == {"startLine": 4, "startColumn": column}, place
    log_of(folder / "missing.yaml")
    control = folder / "control.yaml"
    control.write_bytes(RIGHT.replace("stages: 2", '"sta\\u0001\\u202ege": 2').encode() + b"x: \xff\n")
    log_of(control)
    return together


def code_of(file):
    return subprocess.run([program, "check", str(file)], capture_output=True).returncode


def check_the_checker(log):
    """Each damage is found."""
    def damaged(change):
        other = copy.deepcopy(log)
        change(other["runs"][0])
        return problems_of(other)
    result = "results"
    changes = [
        lambda run: run.pop("tool"), lambda run: run["tool"]["driver"].pop("name"), lambda run: run["tool"]["driver"].update(semanticVersion="1"),
        lambda run: run["tool"]["driver"]["rules"].pop(), lambda run: run["tool"]["driver"]["rules"].append(run["tool"]["driver"]["rules"][0]),
        lambda run: run[result][0].update(level="fatal"), lambda run: run[result][0].pop("message"), lambda run: run[result][0].update(line=3),
        lambda run: run[result][0]["message"].update(text=""), lambda run: run.pop("columnKind"),
        lambda run: run[result][0]["locations"][0]["physicalLocation"]["region"].update(startLine=0),
        lambda run: run[result][0]["locations"][0]["physicalLocation"]["artifactLocation"].update(uri="a b.yaml"),
    ]
    with_place = next(r for r in log["runs"][0][result] if "region" in json.dumps(r))
    log["runs"][0][result].insert(0, with_place)
    for number, change in enumerate(changes):
        assert damaged(change), f"damage {number} is not found"
    return len(changes)


with tempfile.TemporaryDirectory() as name:
    together = check_logs(pathlib.Path(name))
    count = check_the_checker(together)
print(f"{len(together['runs'][0]['results']) - 1} results keep to the standard; {count} damages are found")
