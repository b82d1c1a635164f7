# What a reader would trip over, checked in every source file: long lines, files and functions, a
# file that does not say what it is for, forgotten marks, a machine's own paths, one name for two
# types, and the layout.
"""Usage: tidy_test.py [FILE...]   (all files of the project when none is named)"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["sim", "topology", "strategies", "kernels", "scenarios", "tests", "tools", ".ci"]
CODE = {".cpp", ".hpp", ".cu", ".cuh", ".py", ".cmake", ".sh", ".ts", ".js", ".css"}
CLANG = {".cpp", ".hpp", ".cu", ".cuh"}
COMMENT = {".cpp": "//", ".hpp": "//", ".cu": "//", ".cuh": "//", ".ts": "//", ".js": "//",
           ".css": "/*"}
COLUMNS, FILE_LINES, FUNCTION_LINES = 100, 400, 60

# Spelled so that this file does not contain what it looks for.
MARKS = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b(?!\(#\d+\))")
# The lab compiles these folders with a libc++ that has no std::bit_cast (sim/base/bits.hpp) and
# no algorithms of ranges, for 32 bits, where a size cannot be shifted further.
IN_THE_LAB = {"sim", "topology", "strategies"}
NOT_IN_THE_LAB = re.compile(r"std::bit_cast<|std::ranges::|size_t\{1\} << (3[2-9]|[4-6]\d)\b")
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(wo" + r"rk|ro" + r"ot|ho" + r"me)/[a-z]")


def long_functions(lines):
    """Layout tells: a body ends with a lone brace in the column where its head began, and nothing
    between them starts in that column. Columns 0 and 2: free functions, and those in a class."""
    head = {}
    for number, line in enumerate(lines, 1):
        stripped = line.lstrip(" ")
        indent = len(line) - len(stripped)
        if not stripped or indent not in (0, 2):
            continue
        if stripped != "}":
            head[indent] = number
        elif number - head.get(indent, number) + 1 > FUNCTION_LINES:
            yield head[indent], f"function of {number - head[indent] + 1} lines"


def problems_of(path):
    """Yields (line, message) for one file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        yield 1, "is not UTF-8"
        return
    lines = text.split("\n")
    if text and lines[-1] != "":
        yield len(lines), "does not end with a newline"
    else:
        lines.pop()
    if len(lines) > FILE_LINES:
        yield len(lines), f"{len(lines)} lines, at most {FILE_LINES}"
    first = lines[1] if len(lines) > 1 and lines[0].startswith("#!") else (lines or [""])[0]
    if not re.match(re.escape(COMMENT.get(path.suffix, "#")) + r" \S", first):
        yield 1, "the first line does not say what the file is for"
    in_the_lab = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in IN_THE_LAB
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield number, f"{len(line)} columns, at most {COLUMNS}"
        if line != line.rstrip():
            yield number, "trailing space"
        if "\t" in line:
            yield number, "tab"
        if MARKS.search(line):
            yield number, "a mark without its issue: write it as MARK(#12)"
        if MACHINE_PATH.search(line):
            yield number, "an absolute path of one machine"
        if in_the_lab and NOT_IN_THE_LAB.search(line):
            yield number, "does not compile for the lab: see sim/base/bits.hpp; sizes have 32 bits"
    if path.suffix in CLANG:
        yield from long_functions(lines)


def files():
    """Every source file, and scripts without a suffix."""
    found = [ROOT / "CMakeLists.txt"]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                if path.suffix in CODE or is_script(path):
                    found.append(path)
    return found


def is_script(path):
    with path.open("rb") as file:
        return path.suffix == "" and file.read(2) == b"#!"


def twice_named(paths):
    """Two types of one name in one namespace: the linker takes either's code for both."""
    seen = {}
    for path in paths:
        text = path.read_text(encoding="utf-8") if path.suffix == ".hpp" else ""
        space = re.search(r"^namespace ([\w:]+) {", text, re.MULTILINE)
        for match in re.finditer(r"^(?:struct|class|enum class) (\w+)\b[^;{]*{", text, re.M):
            name = (space[1] if space else "") + "::" + match[1]
            if name in seen:
                yield f"{path}: {name} is also in {seen[name]}"
            seen[name] = path


def layout_problems(paths):
    """What clang-format 14 (Debian 12's) would change; every version has its own taste."""
    program = shutil.which("clang-format")
    sources = [str(path) for path in paths if path.suffix in CLANG]
    if program is None or not sources:
        return []
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if " version 14." not in version.stdout:
        return []
    run = subprocess.run([program, "--dry-run", "-Werror", "--style=file", *sources],
                         capture_output=True, text=True, cwd=ROOT, check=False)
    return [line.split(" [")[0].replace(f"{ROOT}/", "")
            for line in run.stderr.splitlines() if "error:" in line]


def self_check():
    """A guard that never barks guards nothing: each rule must fire on a bad sample."""
    long_body = "int f() {\n" + "  g();\n" * 70 + "}\n"
    samples = {
        "columns": "// x\n" + "a" * 101 + "\n",
        "at most 400": "// x\n" + "a\n" * 400,
        "function of": "// x\n" + long_body,
        "first line": "int a;\n",
        "mark": "// x\n// TO" + "DO later\n",
        "trailing": "// x\na \n",
        "tab": "// x\n\ta\n",
        "absolute path": "// x\n// /wo" + "rk/main\n",
        "newline": "// x",
    }
    good = "// x\nint f() {\n  return 1;  // TO" + "DO(#12)\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample.cpp"
        for expected, text in samples.items():
            sample.write_text(text, encoding="utf-8")
            messages = [message for _, message in problems_of(sample)]
            assert len(messages) == 1 and expected in messages[0], (expected, messages)
        sample.write_text(good, encoding="utf-8")
        assert not list(problems_of(sample)), list(problems_of(sample))
        twins = [Path(folder) / "one.hpp", Path(folder) / "two.hpp"]
        for twin in twins:
            twin.write_text("namespace a {\nstruct B {};\n}\n", encoding="utf-8")
        assert len(list(twice_named(twins))) == 1


def main():
    self_check()
    paths = [Path(name).resolve() for name in sys.argv[1:]] or files()
    found = [f"{path.relative_to(ROOT)}:{line}: {message}"
             for path in paths for line, message in problems_of(path)]
    found += twice_named(paths)
    found += layout_problems(paths)
    for line in found:
        print(line)
    print(f"tidy: {len(paths)} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
