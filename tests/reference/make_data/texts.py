"""Files of reference data as texts: tables, and JSON documents with one entry a line."""
import csv
import json


def compact(value):
    def tidy(x):
        if isinstance(x, dict):
            return {key: tidy(item) for key, item in x.items()}
        if isinstance(x, (list, tuple)):
            return [tidy(item) for item in x]
        return int(x) if isinstance(x, float) and x == int(x) and abs(x) < 1e15 else x
    return json.dumps(tidy(value), separators=(",", ":"))


def number(text):
    """The shortest text of the same number."""
    return compact(float(text))


def table(source, names, rows):
    return "".join(f"# {line}\n" for line in source) + "\n".join(",".join(map(str, row)) for row in [names, *rows]) + "\n"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def listed(entries, indent=1):
    """A JSON list with one entry a line."""
    pad = " " * indent
    return "[\n" + ",\n".join(pad + e for e in entries) + "\n" + " " * (indent - 1) + "]"


def mapped(entries):
    return "{" + listed([f"{compact(key)}: {compact(value)}" for key, value in entries.items()])[1:-1] + "}"


def document(source, **parts):
    """A JSON object of texts that are JSON already."""
    return "{\n" + ",\n".join(f'"{key}": {text}' for key, text in [("source", compact(source)), *parts.items()]) + "\n}\n"


def digest(text):
    """64-bit FNV-1a, as tests/support/reference.hpp computes it."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
