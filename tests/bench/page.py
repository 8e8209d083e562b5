"""Rows of benchmarks as lines of a terminal and as one page of Markdown."""
import datetime
import os
import pathlib
import platform
import subprocess

HEADINGS = ("of", "size", "ours", "reference", "ratio", "what the reference is")


def cells(row):
    ratio = f"{row.ratio:.2f}" if row.ratio is not None and row.ratio < 10 else f"{row.ratio:.0f}" if row.ratio else ""
    return (row.of, row.size, row.ours, row.beside, ratio, row.what)


def show(name, row):
    of, size, ours, beside, ratio, what = cells(row)
    print(f"{name:<12} {of:<34} {size:>22} {ours:>20} {beside:>20} {ratio:>6}  {what}", flush=True)


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def line(*words):
    return "| " + " | ".join(words) + " |"


def origin(root):
    commit = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=root, capture_output=True, text=True).stdout.strip()
    return (f"on {datetime.date.today()}, commit {commit or 'unknown'}: {processor()}, {os.cpu_count()} cores, "
            f"load {os.getloadavg()[0]:.1f} at the end.")


def section_lines(name, section, rows):
    return [f"## {name}", "", section.__doc__, "", line(*HEADINGS), "|---|---:|---:|---:|---:|---|", *(line(*cells(row)) for of, row in rows if of == name)]


def with_sections(root, page, names, rows, sections, options):
    """The page with these sections again, each with its own date, in the order of all."""
    head, *parts = page.rstrip("\n").split("\n\n## ")
    by_name = {part.split("\n", 1)[0]: "## " + part for part in parts}
    for name in names:
        title, blank, what, *table = section_lines(name, sections[name], rows)
        by_name[name] = "\n".join([title, blank, what, "", f"Written by `tools/bench {name} {options}` {origin(root)}", *table])
    return "\n\n".join([head, *(by_name[name] for name in sections if name in by_name)]) + "\n"


def text(root, rows, sections):
    """A table for each section, under what its function says of itself."""
    lines = [
        "# Performance", "",
        f"Written by `tools/bench --all` {origin(root)}", "",
        "Seconds are of the processor unless a row says otherwise; a ratio above 1 is in our favor. If a figure that ours is compared with was",
        "recorded by others, on their machine or an earlier one, the row says so: it shows only the order of magnitude.", "",
        "![How each step grows](growth.svg)"]
    for name, section in sections.items():
        lines += ["", *section_lines(name, section, rows)]
    return "\n".join(lines) + "\n"
