"""Databases of sweeps and of Nsight Systems that run, hide or damage something: views and triggers without end, changed
tables, odd values, damaged pages. Every command that reads one refuses it, or reads what is there, in little time.

    hostile_databases.py STAGECRAFT
"""
import pathlib
import random
import resource
import shutil
import sqlite3
import sys

from tool import binary, check, finish, folder, run

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "fuzz")]
import seeds  # noqa: E402

LIMITS = [(resource.RLIMIT_CPU, 10), (resource.RLIMIT_AS, 2 << 30)]
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
SWEEP = ("schema: sweep/1\ntitle: t\nbase: s.yaml\naxes: {run.micro_batches: [2, 4]}\n",
         "schema: scenario/2\nmodel: {builder: uniform, layers: 2, forward: 1 ms, backward: 2 ms, output: 1 kB}\ncluster: {generator: uniform, devices: 2, network: star, type: a100-80, link: {bandwidth: 1 GB/s, latency: 1 us}}\n"
         "plan: {planner: balanced, stages: 2}\nrun: {schedule: 1f1b, micro_batches: 4}\n")
READ = ["report d.db --out r.html", "sweep-merge d.db --into m.db", "sweep-merge d.db --into m.db --format csv", "sweep w.yaml -b ideal --out d.db"]


def scripts(good):
    """SQL that turns a good database into a hostile one, by its name. Those that end in ! have to be refused."""
    with sqlite3.connect(good) as connection:
        columns = {table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in ("sweep", "point", "result", "scenario", "results")}
    yield "endless view!", f"DROP VIEW results; CREATE VIEW results AS {ENDLESS}SELECT {','.join(f'x AS {c}' for c in columns['results'])} FROM c"
    yield "slow view!", "DROP VIEW results; CREATE VIEW results AS SELECT " + ",".join(f"({ENDLESS}SELECT count(*) FROM c) AS {c}" for c in columns["results"])
    for table in ("sweep", "point", "result", "scenario"):
        copied = ",".join(f"z.{c}" for c in columns[table])
        yield f"endless view in place of {table}!", f"DROP VIEW results; ALTER TABLE {table} RENAME TO z; CREATE VIEW {table} AS {ENDLESS}SELECT {copied} FROM z, c"
        yield f"view in place of {table}!", f"DROP VIEW results; ALTER TABLE {table} RENAME TO z; CREATE VIEW {table} AS SELECT {copied} FROM z"
        yield f"{table} is missing!", f"DROP TABLE {table}"
        yield f"{table} has another column!", f"ALTER TABLE {table} ADD COLUMN other TEXT"
        yield f"index on {table}!", f"CREATE INDEX i ON {table}({columns[table][-1]})"
        yield f"{table} is empty", f"DELETE FROM {table}"
    yield "trigger!", "CREATE TRIGGER a AFTER INSERT ON result BEGIN DELETE FROM result; UPDATE sweep SET title = 'changed'; END"
    yield "endless trigger!", f"CREATE TRIGGER b BEFORE INSERT ON point BEGIN SELECT ({ENDLESS}SELECT count(*) FROM c); END"
    yield "check without end!", ("PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, 'label TEXT NOT NULL', "
                                 f"'label TEXT NOT NULL CHECK (({ENDLESS}SELECT count(*) FROM c) > 0)') WHERE name = 'point'")
    yield "computed column!", "ALTER TABLE point ADD COLUMN big TEXT AS (hex(zeroblob(500000000)))"
    yield "no strict tables!", "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE type = 'table'"
    yield "result of blobs!", "DROP TABLE result; CREATE TABLE result AS SELECT zeroblob(100) AS hash, zeroblob(1) AS backend"
    yield "foreign table with a call", "CREATE TABLE evil(x); INSERT INTO evil VALUES ('load_extension')"
    yield "infinite figures", "UPDATE result SET period_s = 9e999, makespan_s = -1, peak_memory_bytes = 1e308"
    yield "extreme counts", "UPDATE result SET instructions = -9223372036854775808, stages = 9223372036854775807, devices = -1"
    yield "escapes in a message", "UPDATE result SET status = 'error', message = char(27) || '[31m' || char(8238) || '</script>' || char(10) || '=1+1', code = '=1+1'"
    yield "escapes in names", "UPDATE sweep SET title = char(27) || '[2J</script>', name = '../../x'; UPDATE point SET label = '=cmd|x'"
    for number, settings in enumerate(("[[[[[[", "[" * 600 + "]" * 600, "5", '{"a":{"b":[1,null]}}', "{" + ",".join(f'"{i}":0' for i in range(50_000)) + "}")):
        yield f"settings {number}", f"UPDATE point SET settings = '{settings}'"
    yield "another sweep", "UPDATE sweep SET text = 'schema: sweep/1\ntitle: t\nbase: /etc/passwd\naxes: {x: [1]}'"
    yield "another scenario", "UPDATE scenario SET text = 'hello'"
    yield "another version", "UPDATE sweep SET version = char(27) || 'x'; UPDATE result SET version = char(27) || 'x'"
    yield "large numbers", "UPDATE point SET number = number * 1000000000000"
    yield "many points", f"INSERT INTO point SELECT x + 10, 'l', '{{}}', 'h' || x FROM ({ENDLESS}SELECT x FROM c LIMIT 20000)"


def nsight_scripts():
    names = "CREATE TABLE StringIds (id INTEGER, value TEXT); "
    ranges = "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT, textId INTEGER); INSERT INTO NVTX_EVENTS VALUES (1, 2, 1, 'layer_1', NULL); "
    yield "view of names!", f"CREATE VIEW StringIds AS {ENDLESS}SELECT x AS id, 'n' AS value FROM c; " + ranges
    yield "view of ranges!", names + f"CREATE VIEW NVTX_EVENTS AS {ENDLESS}SELECT x AS start, x + 1 AS end, 1 AS globalTid, 'layer_1' AS text, 1 AS textId FROM c"
    yield "computed column!", names + "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, text AS (hex(zeroblob(500000000))))"
    yield "virtual table!", "CREATE VIRTUAL TABLE StringIds USING fts4(id, value); " + ranges


def refused_or_read(name, command, where):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    code, said, errors, _ = run(command.split(" "), cwd=where, limits=LIMITS)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    allowed = (2,) if name.endswith("!") else (0, 2, 3)
    check(code in allowed and "a bug in" not in errors, f"{name}: {command}: {code} after {seconds:.1f} s: {ascii(errors[:300])}")
    check("\x1b" not in said + errors, f"{name}: {command}: a raw escape")


def attempt(name, write, commands):
    for command in commands:
        where = folder / "case"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        (where / "w.yaml").write_text(SWEEP[0])
        (where / "s.yaml").write_text(SWEEP[1])
        write(where / "d.db")
        refused_or_read(name, command, where)


def changed(source, script):
    def write(file):
        file.write_bytes(source)
        connection = sqlite3.connect(file)
        connection.executescript(script)
        connection.commit()
        connection.close()
    return write


place = folder / "made"
place.mkdir()
(place / "w.yaml").write_text(SWEEP[0])
(place / "s.yaml").write_text(SWEEP[1])
code, _, errors, _ = run(["sweep", "w.yaml", "-b", "ideal", "--out", "good.db"], cwd=place)
assert code == 0, errors
sqlite3.connect(place / "good.db").execute("PRAGMA journal_mode = DELETE")
good = (place / "good.db").read_bytes()
for name, script in scripts(place / "good.db"):
    attempt(name, changed(good, script), READ)
for name, script in nsight_scripts():
    attempt(f"nsight: {name}", changed(b"", script), ["import nsight d.db --layer layer", "import nsight d.db --overlap"])
draw = random.Random(1)
for number in range(12):
    damaged = bytearray(good)
    for _ in range(draw.choice((1, 4, 40))):
        damaged[draw.randrange(100, len(damaged))] = draw.randrange(256)
    attempt(f"damaged bytes {number}", lambda file, content=bytes(damaged): file.write_bytes(content), READ)
    cut = good[:draw.randrange(len(good))]
    attempt(f"cut off {number}", lambda file, content=cut: file.write_bytes(content), READ)
for name, journal in (("wal", b"\x37\x7f\x06\x82" + draw.randbytes(5000)), ("journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\0\0\0\1" + draw.randbytes(3000))):
    def write_with_log(file, log=journal, end=name):
        file.write_bytes(good)
        file.with_name(f"{file.name}-{end}").write_bytes(log)
    attempt(f"damaged {name}", write_with_log, READ)
finish()
