# Documentation that cannot go stale: commands in the *.md files print what is shown there, their
# options exist, figures equal their source, paths exist, and READMEs stay short.
"""Usage: readme_test.py REHEARSE [--update]

A fenced block with a line `$ build/rehearse …` runs it; the lines below it are its whole output. A
line of `…` stands for any lines, `…` inside a line for any text. --update rewrites shown output; it
prints the real one where it cannot find the place of a line."""

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 120  # for one command, on a busy machine
COMMAND = re.compile(r"\s*\$ ((?:build/)?rehearse\b.*)")
INLINE = re.compile(r"(?:mpirun .*?)?(?:build/)?rehearse(?: |$)")
PATH = re.compile(r"(sim|topology|strategies|kernels|scenarios|tests|tools)/[\w./*+-]*")
HISTORY = {"CHANGELOG.md"}  # tells of commands and files as they were

# Words of a README, as `wc -w` counts them: maps, not books. Reasons belong to a DECISIONS.md.
WORDS = {"README.md": 1700, "scenarios/README.md": 2500, "scenarios/published/README.md": 1200}
DEFAULT_WORDS, ALL_WORDS = 600, 13500

# A figure of a text (group 1), and the shell command whose output has the same one (group 1).
OPS = "build/rehearse predict {} --no-advice --json -"
PLAIN_GPT3 = ("scenarios/gpt3-175b.toml --set recompute_granularity=none --set dropout=0 "
              "--set flash_attention=true")
CLASSES = "build/rehearse predict scenarios/gpt3-175b.toml --no-advice --csv - | grep -c '^.stage'"
ROWS = "grep '^{}' scenarios/published/README.md"
LIMIT = "grep -rhE '{} =' strategies --include=*.cpp"
FIGURES = [
    ("tools/bench/README.md", r"1,536 sequences \| ([\d,]+)", OPS.format(PLAIN_GPT3),
     r'"ops": (\d+)'),
    ("tools/bench/README.md", r"gpt3-175b.toml`\) \| ([\d,]+)",
     OPS.format("scenarios/gpt3-175b.toml"), r'"ops": (\d+)'),
    ("tools/bench/README.md", r"2,048 sequences \| ([\d,]+)",
     OPS.format("scenarios/llama3-405b-16k.toml"), r'"ops": (\d+)'),
    ("README.md", r": (\d+)\s+lessons", "ls scenarios/lessons/*.toml | wc -l", r"(\d+)"),
    ("README.md", r"(\d+) training runs with", "ls tests/golden/*.txt | wc -l", r"(\d+)"),
    ("README.md", r"more than ([\d,]+) kernels", LIMIT.format("most_kernels"), r"([\d']+);"),
    ("README.md", r"739 published steps are ([\d.]+) %", ROWS.format("training.csv  *739"),
     r"739 +([\d.]+) %"),
    ("README.md", r"([\d.]+) % with constants\s+fitted without", ROWS.format("training.csv  *739"),
     r"([\d.]+) %$"),
    ("README.md", r"209 data-parallel steps are ([\d.]+) %", ROWS.format("data_parallel.csv  *209"),
     r"209 +([\d.]+) %"),
    ("scenarios/README.md", r"(\d+) lessons", "ls scenarios/lessons/*.toml | wc -l", r"(\d+)"),
    ("scenarios/README.md", r"(\d+) GB/s in `in-switch",
     "build/rehearse bench all_reduce --cluster scenarios/in-switch.toml -b 1G -e 1G",
     r" (\d+)\.\d+ +N/A +\S+ +\S+ +\S+ +N/A +nvls"),
    ("strategies/DECISIONS.md", r"fold into (\d+) classes", CLASSES, r"(\d+)"),
    ("strategies/DECISIONS.md", r"at most ([\d,]+) kernels", LIMIT.format("most_kernels"),
     r"([\d']+);"),
    ("strategies/DECISIONS.md", r"and ([\d,]+) ops with", LIMIT.format("most_transfers"),
     r"([\d']+);"),
    ("strategies/DECISIONS.md", r"more than ([\d,]+) transfers",
     LIMIT.format("too_many_transfers"), r"([\d']+);"),
    ("strategies/DECISIONS.md", r"up to ([\d,]+) transfers",
     LIMIT.format("most_transfers_at_all"), r"([\d']+);"),
]


class Project:
    """A scratch folder that looks like the project's root, so that nothing is written there."""

    def __init__(self, folder, binary):
        self.folder, self.outputs, self.helps = Path(folder), {}, {}
        for path in ROOT.iterdir():
            if not path.name.startswith((".", "build")):
                (self.folder / path.name).symlink_to(path)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "rehearse").symlink_to(Path(binary).resolve())

    def run(self, command):
        """(exit code, output) of a shell command; a command runs once."""
        if command not in self.outputs:
            # Variables of MPI, terminals and our own would change what is printed.
            keep = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
                    if key in os.environ}
            keep |= {"PATH": f"{self.folder}/build:{keep.get('PATH', '')}", "LC_ALL": "C.UTF-8"}
            try:
                done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=keep,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
                self.outputs[command] = (done.returncode, done.stdout.decode("utf-8", "replace"))
            except subprocess.TimeoutExpired:
                self.outputs[command] = (124, f"took longer than {SECONDS} s")
        return self.outputs[command]

    def help(self, command):
        """(sub-commands, options) that `rehearse COMMAND --help` lists."""
        if command not in self.helps:
            text = self.run(" ".join(["build/rehearse", *command, "--help"]))[1]
            options = re.findall(r"^  (-[^ ]*)", text, re.MULTILINE)
            below = text.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
            self.helps[command] = (set(re.findall(r"^  (\w+)", below, re.MULTILINE)),
                                   {name for names in options for name in names.split(",")})
        return self.helps[command]


def documents():
    """Every *.md file of the project, without builds."""
    return [path for path in sorted(ROOT.rglob("*.md"))
            if not any(part.startswith((".", "build")) or part == "node_modules"
                       for part in path.relative_to(ROOT).parts)]


def is_gap(line):
    return line.strip() == "…"


def matches(shown, line):
    return re.fullmatch(".*".join(map(re.escape, shown.rstrip().split("…"))), line) is not None


def segments(shown):
    """(first, lines, begins, ends) of the runs between gaps: index, text, and whether the run must
    begin or end with the output."""
    first = 0
    for at in range(len(shown) + 1):
        if at == len(shown) or is_gap(shown[at]):
            if at > first:
                yield first, shown[first:at], first == 0, at == len(shown)
            first = at + 1


def leading(lines, got, at):
    """How many of `lines` are there, one after the other from `at` on."""
    count = 0
    while count < len(lines) and at + count < len(got) and matches(lines[count], got[at + count]):
        count += 1
    return count


def difference(shown, got):
    """(index into shown, what is there instead) of the first line that differs, or None."""
    at = 0
    for first, lines, begins, ends in segments(shown):
        last_start = len(got) - len(lines)
        starts = [0] if begins else [last_start] if ends else range(at, last_start + 1)
        starts = [start for start in starts if start >= at] or [at]
        best = max(starts, key=lambda start: leading(lines, got, start))
        count = leading(lines, got, best)
        if count < len(lines):
            like = nearest(lines[0], got, at) if count == 0 and not begins else best + count
            return first + count, "(the end)" if like in (None, len(got)) else got[like]
        at = best + len(lines)
        if ends and at < len(got):
            return first + len(lines) - 1, f"more output: {got[at]}"
    return None


def likeness(shown, line):
    """1 where the two differ in numbers only."""
    one, other = (re.sub(r"[\d.,']+", "#", text).strip() for text in (shown, line))
    return 1 if matches(one, other) else difflib.SequenceMatcher(None, one, other).ratio()


def nearest(shown, got, at):
    """Index of the line most like `shown` from `at` on, or None."""
    found = max(range(at, len(got)), key=lambda i: likeness(shown, got[i]), default=None)
    return found if found is not None and likeness(shown, got[found]) > 0.6 else None


def shortened(lines, line):
    """`line`, with `…` where the shown line that is most like it has one."""
    like = max(lines, key=lambda shown: likeness(shown, line))
    if like.count("…") != 1 or likeness(like, line) < 0.6:
        return line
    head, tail = like.split("…")
    words = line.split()[len(line.split()) - len(tail.split()):]
    space = tail[:len(tail) - len(tail.lstrip())]
    return line[:len(head)] + "…" + (space + " ".join(words) if words else "")


def rewritten(shown, got):
    """`shown` with the lines of `got` in place of those like them, or None."""
    lines, at, done = [], 0, 0
    for first, run, begins, ends in segments(shown):
        begin = 0 if begins else nearest(run[0], got, at)
        end = len(got) - 1 if ends else nearest(run[-1], got, begin) if begin is not None else None
        if begin is None or end is None or not got:
            return None
        lines += shown[done:first] + [shortened(run, line) for line in got[begin:end + 1]]
        at, done = end + 1, first + len(run)
    return lines + shown[done:]


def fences(lines):
    """(begin, end) of the lines inside each fenced block."""
    begin = None
    for number, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            if begin is not None:
                yield begin, number
            begin = number + 1 if begin is None else None


def commands(lines):
    """(index of its line, command, index behind its output) of every command that is run."""
    for begin, end in fences(lines):
        starts = [at for at in range(begin, end) if lines[at].lstrip().startswith("$ ")]
        for at, behind in zip(starts, starts[1:] + [end]):
            if match := COMMAND.match(lines[at]):
                yield at, match[1].strip(), behind


def check_commands(path, project, updates):
    """Runs what `path` shows, from top to bottom. Yields (line, message)."""
    lines = path.read_text(encoding="utf-8").split("\n")
    better = []  # (first line, last line, what belongs there)
    for at, command, behind in commands(lines):
        shown = lines[at + 1:behind]
        while shown and not shown[-1].strip():
            shown.pop()
        code, output = project.run(command)
        got = [line.rstrip() for line in output.rstrip("\n").split("\n")]
        if code != 0 and not any("error" in line for line in shown):
            yield at + 1, f"`{command}` ends with {code}: {output.strip()[-300:]}"
            continue
        problem = difference(shown, got)
        if problem is None:
            continue
        new = rewritten(shown, got) if updates else None
        if new is not None and difference(new, got) is None:
            better.append((at + 1, at + 1 + len(shown), new))
            continue
        yield at + 2 + problem[0], (f"`{command}`\n  shown  {shown[problem[0]]}\n"
                                    f"  got    {problem[1]}")
        if updates:
            yield at + 1, "the real output:\n" + "\n".join(got)
    for first, last, new in reversed(better):
        lines[first:last] = new
    if better:
        path.write_text("\n".join(lines), encoding="utf-8")


def spans(lines):
    """(line number, text) of everything in backticks outside of fenced blocks, and of commands
    inside of them that are not run."""
    plain = list(lines)
    for begin, end in fences(lines):
        for at in range(begin - 1, end + 1):
            if begin <= at < end and INLINE.match(lines[at].strip()):
                yield at + 1, lines[at].strip()
            plain[at] = ""
    text = "\n".join(plain)
    for match in re.finditer(r"`([^`]+)`", text):
        if "\n\n" not in match[1]:
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[1].split())


def command_problem(text, project):
    """What is wrong with a command that is only named: its sub-command and options must exist."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    words = words[next(i for i, word in enumerate(words) if word.endswith("rehearse")) + 1:]
    command = ()
    while words and words[0] in project.help(command)[0]:
        command += (words.pop(0),)
    if not command and words and re.fullmatch(r"[a-z_]+", words[0]):
        return f"`{text}`: there is no command {words[0]}"
    if not command and words and words[0].isupper():
        return None  # rehearse COMMAND --help
    options = project.help(command)[1]
    for word in words:
        if word in ("|", ">", "&&", ";"):
            break
        name = word.split("=")[0]
        if re.match(r"--?[A-Za-z]", name) and name not in options:
            return f"`{text}`: {' '.join(command)} has no option {name}"
    return None


def is_there(word):
    """Whether a path from the root exists; files may be named without their ending."""
    return (ROOT / word).exists() or any(ROOT.glob(word.rstrip("/"))) or any(ROOT.glob(word + ".*"))


def check_words(path, project):
    """Commands and paths that `path` names. Yields (line, message)."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, span in spans(lines):
        if INLINE.match(span):
            if problem := command_problem(span, project):
                yield number, problem
        word = span.split(" ")[0]
        if PATH.fullmatch(word) and not re.search(r"NAME|NN", word) and not is_there(word):
            yield number, f"there is no {word}"
    for number, line in enumerate(lines, 1):
        for target in re.findall(r"\]\(([^)#:\s]+)\)", line):
            if not (path.parent / target).exists():
                yield number, f"links to {target}, which does not exist"


def check_figures(project):
    """Figures against their source, and the root's table of speeds against the bench's."""
    for name, there, command, here in FIGURES:
        text = (ROOT / name).read_text(encoding="utf-8")
        said = re.search(there, text)
        output = project.run(command)[1]
        found = re.search(here, output)
        if said is None or found is None:
            missing = f"nothing like {there}" if said is None else f"`{command}` says nothing"
            yield f"{name}: {missing}"
        elif re.sub(r"\D", "", said[1]) != re.sub(r"\D", "", found[1]):
            line = text.count("\n", 0, said.start(1)) + 1
            yield f"{name}:{line}: shown {said[1]}, got {found[1]} from `{command}`"
    measured = (ROOT / "tools/bench/README.md").read_text(encoding="utf-8").split("\n")
    speed = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Speed\n")[2]
    for line in speed.partition("\n## ")[0].split("\n"):
        if line.startswith("|") and line not in measured:
            yield f"README.md: {line}\n  is not a line of tools/bench/README.md"


def check_lengths(paths):
    """Word limits of the READMEs, and of all of them together."""
    total = 0
    for path in paths:
        if path.name == "README.md":
            name = str(path.relative_to(ROOT))
            words = len(path.read_text(encoding="utf-8").split())
            total += words
            if words > WORDS.get(name, DEFAULT_WORDS):
                yield f"{name}: {words} words, at most {WORDS.get(name, DEFAULT_WORDS)}"
    if total > ALL_WORDS:
        yield f"READMEs have {total} words together, at most {ALL_WORDS}"


def self_check():
    """A guard that never barks guards nothing."""
    got = ["head", "a 1", "b 2", "c 3", "tail"]
    for right in (got, ["…", "b 2", "…"], ["head", "…", "c…", "tail"], ["…"], [], ["…", "tail"]):
        assert difference(right, got) is None, right
    for wrong, index in ((["a 1"], 0), (["…", "b 3", "…"], 1), (["…", "a 1", "c 3", "…"], 2),
                         (["head", "…", "c 3"], 2), (["…", "c 3", "…", "a 1", "…"], 3)):
        assert difference(wrong, got)[0] == index, wrong
    assert rewritten(["…", "a 7", "b 9", "…"], got) == ["…", "a 1", "b 2", "…"]
    assert rewritten(["head", "…", "c …"], ["head", "x", "c 4 5"]) == ["head", "…", "c …"]
    assert rewritten(["…", "nothing like it", "…"], got) is None
    sample = ["```", "$ rehearse x", "out", "$ ls", "```", "`rehearse y", "--z`"]
    assert list(commands(sample)) == [(1, "rehearse x", 3)]
    assert list(spans(sample)) == [(6, "rehearse y --z")]


def main():
    self_check()
    updates = "--update" in sys.argv
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    if len(names) != 1:
        sys.exit(__doc__)
    paths, problems, count = documents(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder, names[0])
        for path in paths:
            name = path.relative_to(ROOT)
            found = []
            if name.name not in HISTORY:
                count += len(list(commands(path.read_text(encoding="utf-8").split("\n"))))
                found = [*check_commands(path, project, updates), *check_words(path, project)]
            problems += [f"{name}:{line}: {message}" for line, message in sorted(found)]
        problems += [*check_figures(project), *check_lengths(paths)]
    for problem in problems:
        print(problem)
    print(f"docs: {len(paths)} files, {count} commands, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
