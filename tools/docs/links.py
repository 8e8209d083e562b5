"""Turns Markdown of the project into pages of the site: links between pages, pictures, and lists as Python's Markdown reads them."""
import posixpath
import re
import urllib.parse

FENCE = re.compile(r"^ *(```|~~~)")
# A code span, or a link or picture: [text](target) and ![text](target). Text may hold one code span with brackets.
PIECE = re.compile(r"(?P<code>`+)(?:.+?)(?P=code)|(?P<mark>!?)\[(?P<text>(?:[^\[\]`]|`[^`]*`)*)\]\((?P<target>[^()\s]+)\)")
LIST = re.compile(r"^( *)([-*]|\d+\.) ")
PICTURES = {".svg", ".png", ".jpg"}
PLAYGROUND = "tools/docs/playground.md"
SHOWN = re.compile(r"1[\w-]+|example=\S+")  # What the playground reads after the # of its address.


def slug(heading):
    """The anchor of a heading, as the toc extension of Python's Markdown makes it."""
    text = re.sub(r"[`*]|\[|\]\([^)]*\)", "", heading)
    text = re.sub(r"[^\w\s-]", "", text.encode("ascii", "ignore").decode()).strip().lower()
    return re.sub(r"[-\s]+", "-", text)


class Site:
    """`pages`: file of the project -> page of the site. `play` is the page that simulates, if the site has it."""

    def __init__(self, root, pages, play=None):
        self.root, self.pages, self.play, self.pictures, self.problems = root, pages, play, set(), []

    def convert(self, name):
        lines, code, before = [], False, ""
        for line in (self.root / name).read_text().splitlines():
            if FENCE.match(line):
                code = not code
            elif not code and not line.startswith("    "):
                starts_list = LIST.match(line) and before.strip() and not LIST.match(before) and not before.startswith(" ")
                if starts_list:
                    lines.append("")
                line = PIECE.sub(lambda piece: self.piece(name, piece), line)
            lines.append(line)
            before = line
        return "\n".join(lines) + "\n"

    def piece(self, name, piece):
        target = piece["target"]
        if target is None or re.match(r"[a-z]+:", target):
            return piece[0]
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(name), urllib.parse.unquote(path))) if path else name
        if not (self.root / file).exists():
            self.problems.append(f"{name}: {target}")
            return piece[0]
        if file == PLAYGROUND and SHOWN.fullmatch(anchor):
            target = f"{self.relative(name, self.play)}#{anchor}" if self.play else self.relative(name, self.pages[file])
            return f"[{piece['text']}]({target})"
        if (self.root / file).suffix in PICTURES:
            self.pictures.add(file)
            return f"{piece['mark']}[{piece['text']}]({self.relative(name, file)})"
        readme = posixpath.join(file, "README.md")
        page = self.pages.get(file) or self.pages.get(readme)
        if not page:
            code = f"`{file}`"
            said = piece["text"].strip("`") in (file, posixpath.basename(file))
            return code if said else f"{piece['text']} ({code})"
        source = file if file in self.pages else readme
        if anchor and anchor not in self.anchors(source):
            self.problems.append(f"{name}: {target}: no such heading")
        return f"[{piece['text']}]({self.relative(name, page)}{'#' + anchor if anchor else ''})"

    def relative(self, name, target):
        return posixpath.relpath(target, posixpath.dirname(self.pages[name]) or ".")

    def anchors(self, file):
        return {slug(h) for h in re.findall(r"^#+ (.*)$", (self.root / file).read_text(), re.M)}
