# An installed copy is whole: its program runs from anywhere, its headers and libraries are found
# by a project in another folder, and what that builds prints what our own build prints.
"""Usage: install_test.py BUILD CMAKE COMPILER   (BUILD must be built)"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples_test import difference, example_output

SECONDS = 300  # for one step, on a busy machine
OURS = re.compile(r'^#include "([^"]+)"', re.M)
THEIRS = re.compile(r"^#include <([^>]+)>", re.M)
STANDARD = re.compile(r"[a-z_0-9]+|[a-z_]+\.h|sys/.*|fmt/.*")  # or what the package asks for
EXAMPLES = ["predict", "custom_collective"]  # of Rehearse::core, of Rehearse::kernels


def run(words, folder, expected=0):
    """What a command prints; the test ends where it fails."""
    keep = {key: os.environ[key] for key in ("PATH", "HOME", "LD_LIBRARY_PATH", "CCACHE_DIR")
            if key in os.environ}
    done = subprocess.run([str(word) for word in words], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=keep | {"LC_ALL": "C.UTF-8"}, timeout=SECONDS, check=False)
    if done.returncode != expected:
        sys.exit(f"`{' '.join(map(str, words))}` ends with {done.returncode}:\n"
                 f"{done.stdout[-3000:]}")
    return done.stdout


def program_problems(prefix, folder):
    """The installed program, from a folder that has nothing to do with it."""
    program = prefix / "bin" / "rehearse"
    scenario = prefix / "share" / "rehearse" / "scenarios" / "zero-bubble.toml"
    for words, expected in ((["predict", scenario, "--no-advice"], "1,218.479"),
                            (["teach", "--list"], "How large is the bubble?"),
                            (["topo", "show"], "dgx-h100"),
                            (["validate", *sorted(scenario.parent.glob("*.toml"))], "ok")):
        printed = run([program, *words], folder)
        if expected not in printed:
            yield f"rehearse {words[0]}: nothing like '{expected}' in:\n{printed[-1000:]}"


def header_problems(prefix):
    """Whoever includes a header needs nothing that is not there."""
    root = prefix / "include" / "rehearse"
    headers = sorted(root.rglob("*.hpp"))
    if len(headers) < 100:
        yield f"{len(headers)} headers"
    for header in headers:
        text = header.read_text(encoding="utf-8")
        name = header.relative_to(root)
        for included in OURS.findall(text):
            if not (root / included).exists():
                yield f"{name}: {included} is not installed"
        for included in THEIRS.findall(text):
            if not STANDARD.fullmatch(included):
                yield f"{name}: includes <{included}>"


def package_problems(prefix, source):
    """No file of the package knows where it was built: it may be moved to another machine."""
    for file in sorted((prefix / "lib" / "cmake").rglob("*.cmake")):
        text = file.read_text(encoding="utf-8")
        for word in (str(source), str(prefix)):
            if word in text:
                yield f"{file.relative_to(prefix)}: names {word}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    build, cmake, compiler = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    source = Path(__file__).resolve().parent.parent.parent
    problems = []
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        first, prefix, folder = (Path(scratch) / name for name in ("first", "moved", "outside"))
        run([cmake, "--install", build, "--prefix", first], scratch)
        problems += package_problems(first, source)
        first.rename(prefix)  # nothing in it may know its place
        problems += [*program_problems(prefix, scratch), *header_problems(prefix)]
        shutil.copytree(prefix / "share" / "rehearse" / "examples", folder)
        run([cmake, "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
             f"-DCMAKE_CXX_COMPILER={compiler}"], scratch)
        run([cmake, "--build", folder / "build", "--target", *EXAMPLES], scratch)
        for name in EXAMPLES:
            printed = example_output(name, folder / "build", prefix / "share" / "rehearse", folder)
            if found := difference(name, printed):
                problems.append(found)
    for problem in problems:
        print(problem)
    print(f"install: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
