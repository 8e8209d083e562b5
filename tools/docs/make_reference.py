#!/usr/bin/env python3
"""Writes the reference as Markdown, from what the program says about itself.

  tools/docs/make_reference.py PROGRAM OUT    scenario.md, files.md, commands.md, names.md, glossary.md and schema/*.json in OUT"""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GLOSSARY = [ROOT / "tools/stagecraft/glossary.cpp", ROOT / "tools/stagecraft/field_terms.cpp"]

KINDS = {
    "schedules": "The order in which each GPU runs its forwards and backwards. Use: `run: {schedule: NAME}`.",
    "planners": "Methods that cut a model into stages and place them. Use: `plan: {planner: NAME}`.",
    "weights": "Which version of the weights each forward and backward reads. Use: `weights: NAME`.",
    "backends": "What runs a scenario. Use: `stagecraft run FILE --backend NAME`.",
    "models": "Models by name. Use: `model: NAME`.",
    "builders": "Builders of models from their shape. Use: `model: {builder: NAME}`.",
    "topologies": "Clusters by name. Use: `cluster: NAME`.",
    "generators": "Generators of clusters. Use: `cluster: {generator: NAME}`.",
    "devices": "Device types with the sources of their figures. Use: `type: NAME` in a cluster.",
    "collectives": "Algorithms of collective operations.",
    "tasks": "What real runs train. Use: `training: {task: NAME}`.",
    "optimizers": "Update rules of real runs. Use: `training: {optimizer: NAME}`.",
    "scenarios": "Scenarios of the project. Use: `stagecraft run NAME`.",
    "sweeps": "Sweeps of the project. Use: `stagecraft sweep NAME`.",
    "profiles": "Measured costs. Use: `profile: NAME`.",
    "published": "Published results that `stagecraft reproduce NAME` compares with simulated ones.",
}
FILES = {
    "sweep": ("Sweeps", "`stagecraft sweep FILE` runs a scenario with many values."),
    "profile": ("Profiles", "`stagecraft profile` writes measured costs; `profile: FILE` in a scenario uses them."),
    "published": ("Published results", "`stagecraft reproduce FILE` compares published figures with simulated ones."),
    "device": ("Device types for times from shapes", "Files of `topologies/devices`."),
    "collectives": ("Measured collectives", "Files of `topologies/collectives`."),
    "predictions": ("Measured iterations of publications", "`stagecraft reproduce predictions` compares them with times from shapes."),
    "results": ("Results of a run", "`stagecraft run FILE --out DIR` writes `results.json`."),
}


class Program:
    def __init__(self, path):
        self.path = path
        self.environment = {**os.environ, "STAGECRAFT_PATH": str(ROOT), "STAGECRAFT_QUIET": "1"}

    def attempt(self, *words):
        return subprocess.run([str(self.path), *words], capture_output=True, text=True, cwd=ROOT, env=self.environment)

    def __call__(self, *words):
        done = self.attempt(*words)
        if done.returncode != 0:
            raise SystemExit(f"make_reference.py: stagecraft {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout


def cell(text):
    """Text in a table: one line, and nothing that Markdown or HTML would read as markup outside of code."""
    text = re.sub(r"\s+", " ", text).strip()
    text = text.replace("|", "\\|").replace("<", "&lt;")
    return re.sub(r"(?<![`\w])([\w.-]*[_*][\w.*-]*)(?![`\w])", lambda m: m[0].replace("_", "\\_").replace("*", "\\*"), text)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def scenario_page(program):
    text = program("explain", "--reference")
    title, _, rest = text.partition("\n")
    assert title == "# Scenario", title
    return ("# Scenario files\n\nEvery field of a scenario. `stagecraft explain PATH` prints one of them, for example `stagecraft explain run.schedule`. "
            "The fields below `model` and `cluster` are also the fields of model files and cluster files. "
            "[JSON Schema](schema/scenario.schema.json) for editors.\n" + rest)


# Files of other kinds, from their JSON Schema.

def without_references(schema, definitions):
    """A copy with the definitions in place of the references to them; fields next to a reference stay."""
    if isinstance(schema, list):
        return [without_references(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: without_references(value, definitions) for key, value in schema.items() if key not in ("$ref", "$defs")}
    if "$ref" not in schema:
        return rest
    return {**without_references(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions), **rest}


def unit_of(schema):
    """"s, ms, us, ns" for a text such as "5 ms"; nothing for other texts."""
    units = re.search(r"\(([\w/|]+)\)\$$", schema.get("pattern", "").replace("\\/", "/"))
    return units[1].replace("|", ", ") if units else ""


def type_of(schema):
    if "enum" in schema:
        return ("one of " if len(schema["enum"]) > 1 else "") + ", ".join(f"`{v}`" for v in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    for some in ("oneOf", "anyOf"):
        if some in schema:
            kinds = []
            units = [unit_of(choice) for choice in schema[some] if unit_of(choice)]
            if units:  # The other choice is a plain 0.
                return "number with a unit: " + units[0]
            for choice in schema[some]:
                kinds += [k for k in [type_of(choice)] if k not in kinds]
            return " or ".join(kinds)
    kind = schema.get("type", "anything")
    if kind == "array":
        return "list of " + type_of(schema.get("items", {}))
    names = {"object": "map", "string": "text", "integer": "whole number", "boolean": "true or false", "null": "nothing"}
    several = kind if isinstance(kind, list) else [kind]
    if "string" in several and "boolean" in several:  # A text may look like a number or a truth value in YAML.
        return "text"
    if "string" in several and len(several) > 1:  # A number may be quoted.
        several = [k for k in several if k != "string"]
    return " or ".join(names.get(k, k) for k in several)


def maps_in(schema):
    """The maps that a value may be, or that are in its list or below its names."""
    if schema.get("type") == "object" and schema.get("properties"):
        yield schema
    for some in ("oneOf", "anyOf"):
        for choice in schema.get(some, []):
            yield from maps_in(choice)
    for inside in ("items", "additionalProperties"):
        if isinstance(schema.get(inside), dict):
            yield from maps_in(schema[inside])


def fields_of(schema, path, seen):
    """Tables of a map and of the maps in it, each once."""
    text = ""
    for one in maps_in(schema):
        key = json.dumps(one["properties"], sort_keys=True)
        if key in seen:
            continue
        seen.add(key)
        required = one.get("required", [])
        rows = [(f"`{name}`", cell(type_of(field)), (f"`{field['default']}`" if field["default"] != "" else '`""`') if "default" in field else "required" if name in required else "optional",
                 cell(field.get("description", ""))) for name, field in one["properties"].items()]
        if path:
            text += f"\n### `{path}`\n\n"
        text += table(["field", "what it takes", "default", "meaning"], rows)
        for name, field in one["properties"].items():
            text += fields_of(field, f"{path}.{name}" if path else name, seen)
    return text


def columns_table(columns):
    """Columns of a CSV file or of a table, from a JSON Table Schema."""
    rows = [(f"`{c['name']}`", cell(c.get("type", "")), cell(c.get("unit", "")), cell(c.get("description", ""))) for c in columns]
    if not any(unit for _, _, unit, _ in rows):
        return table(["column", "type", "meaning"], [(name, kind, text) for name, kind, _, text in rows])
    return table(["column", "type", "unit", "meaning"], rows)


def schema_kinds(program):
    """The kinds of files that have a schema: what `schema` lists, or what its help names where it lists none."""
    done = program.attempt("schema")
    listed = re.findall(r"^  (\S+)  +\S", done.stdout, re.M)
    return listed if done.returncode == 0 and listed else kinds(program, "schema")


def files_page(program, schemas):
    text = "# Other files\n\nModels and clusters are described with [scenario files](scenario.md).\n"
    own_pages = {"scenario", "model", "cluster"}
    for kind in [k for k in FILES if k in schemas] + [k for k in schemas if k not in FILES and k not in own_pages]:
        title, use = FILES.get("results" if kind == "results.json" else kind, (f"`{kind}`", ""))
        schema = without_references(schemas[kind], schemas[kind].get("$defs", {}))
        text += f"\n## {title}\n\n{use} {schema.get('description', '')} [JSON Schema](schema/{kind}.schema.json).\n\n"
        for part in schema.get("resources", [schema]):  # The tables of a database; else the one schema.
            columns = part.get("schema", part).get("fields")
            if "resources" in schema:
                text += f"\n### `{part.get('name', '')}`\n\n"
            text += columns_table(columns) if columns else fields_of(part, "", set())
    return text


# Commands, from their --help.

def help_sections(text):
    """(title, lines) of the parts of a help text; the first has no title."""
    sections = [("", [])]
    for line in text.splitlines():
        title = re.match(r"^(?:(Usage): (.*)|([A-Z][\w -]*):)$", line)
        if title:
            sections.append((title[1] or title[3], [title[2]] if title[1] else []))
        else:
            sections[-1][1].append(line)
    return sections


def entries(lines):
    """(words, meaning) of lines such as "  -o,--out TEXT   Folder"; a meaning may start on the next line."""
    found = []
    for line in lines:
        if match := re.match(r"^ {2}(\S+(?: \S+)*)(?: {2,}(\S.*))?$", line):
            found.append([match[1], match[2] or ""])
        elif line.strip():
            if not found:
                raise SystemExit(f"make_reference.py: no option in the help line '{line}'")
            found[-1][1] += " " + line.strip()
    return [(words, meaning.strip()) for words, meaning in found]


def command_text(program, name):
    summary, *sections = help_sections(program(name, "--help"))
    text = f"\n### stagecraft {name}\n\n{cell(' '.join(summary[1]))}.\n"
    for title, lines in sections:
        if title in ("Usage", "Example"):
            code = "\n".join(line.strip() for line in lines if line.strip())
            text += f"\n{title}:\n\n```\n{code}\n```\n"
        elif rows := [(f"`{words.replace(' REQUIRED', '')}`", cell(meaning)) for words, meaning in entries(lines) if words != "-h,--help"]:
            title = {"Positionals": "", "Options": "Options"}.get(title, title)
            text += (f"\n{title}:\n" if title else "") + "\n" + table(["argument" if not title else "option", "meaning"], rows)
    return text


def commands_page(program):
    text = "# Commands\n\nExit codes: 0 done; 2 the input is wrong; 3 impossible; 4 the backend or the machine failed; 70 internal error; 130 interrupted.\n"
    count = 0
    for title, lines in help_sections(program("--help")):
        if title in ("", "Usage", "Options"):
            continue
        text += f"\n## {title}\n"
        for name, _ in entries([line for line in lines if not line.startswith("stagecraft ")]):
            text += command_text(program, name)
            count += 1
    if count < 15:
        raise SystemExit(f"make_reference.py: only {count} commands in stagecraft --help")
    return text


# Names, from list.

def kinds(program, command):
    doc = " ".join(program(command, "--help").split())
    words = re.search(r"KIND(?: REQUIRED)? ([a-z, ]+? or [a-z]+)", doc)
    if not words:
        raise SystemExit(f"make_reference.py: stagecraft {command} --help does not name its kinds")
    return re.findall(r"[a-z]+", words[1].replace(" or ", ", "))


def names_page(program):
    listed = kinds(program, "list")
    text = "# Names\n\nWhat `stagecraft list KIND` prints. `stagecraft explain NAME` says more about one name.\n"
    for kind in [k for k in KINDS if k in listed] + [k for k in listed if k not in KINDS]:
        rows = []
        for line in program("list", kind).splitlines():
            name, _, rest = line.partition(" ")
            meaning, source = re.match(r"^(.*?)(?:\s+\[(.*)\])?$", rest.strip()).groups()
            rows.append((f"`{name}`", cell(meaning), cell(source or "")))
        text += f"\n## {kind.capitalize()}\n\n{KINDS.get(kind, '')}\n\n" + table(["name", "meaning", "source"], rows)
    return text


# The glossary. The program explains a word but does not list them, so the words come from its table.

def glossary_terms():
    """(heading, words) of the tables of terms; comments in them are the headings."""
    terms = []
    for file in GLOSSARY:
        source = file.read_text()
        lines = source[re.search(r"Term k\w*Terms\[\]", source).start():]
        lines = lines[:lines.index("\n};")]
        heading = ""
        for match in re.finditer(r'^    (?:// (?P<heading>.*?)\.?|\{(?P<words>(?:"[^"]*"\s*)+),.*)$', lines, re.M):
            heading = match["heading"] or heading
            if match["words"]:
                terms.append((heading, re.sub(r'"\s*"|^"|"\s*$', "", match["words"]).split("|")))
    if len(terms) < 40:
        raise SystemExit(f"make_reference.py: only {len(terms)} terms in {GLOSSARY}")
    return terms


def glossary_page(program):
    text = "# Glossary\n\nTerms of the output and of the files. `stagecraft explain WORD` prints one of them.\n"
    before = ""
    for heading, words in glossary_terms():
        said = [line for line in program("explain", words[0]).splitlines() if line.startswith(f"{words[0]}: ")]
        if not said:
            raise SystemExit(f"make_reference.py: stagecraft explain {words[0]} does not explain it")
        if heading != before:
            text += f"\n## {heading}\n\n"
        before = heading
        also = f" (also: {', '.join(cell(w) for w in words[1:])})" if words[1:] else ""
        text += f"**{cell(words[0])}**{also}  \n{cell(said[0].partition(': ')[2])}\n\n"
    operations = program("explain", "0F3").splitlines()
    rows = [line.split(None, 1) for line in operations if line.startswith("  ")]
    return text + "\n## Operations\n\n" + operations[1] + "\n\n" + table(["letter", "operation"], [(f"`{a}`", cell(b)) for a, b in rows])


def write(path, out):
    program = Program(path)
    (out / "schema").mkdir(parents=True, exist_ok=True)
    schemas = {kind: program("schema", kind) for kind in schema_kinds(program)}
    for kind, text in schemas.items():
        (out / "schema" / f"{kind}.schema.json").write_text(text)
    parsed = {kind: json.loads(text) for kind, text in schemas.items()}
    pages = {"scenario": scenario_page(program), "files": files_page(program, parsed), "commands": commands_page(program),
             "names": names_page(program), "glossary": glossary_page(program)}
    for name, text in pages.items():
        (out / f"{name}.md").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
