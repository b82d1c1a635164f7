# The programs of tools/examples print what they printed when somebody last looked at it.
"""Usage: examples_test.py FOLDER [--update]   (FOLDER has the programs)

--update rewrites tests/golden/examples/*.txt: review the difference."""

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GOLDEN = ROOT / "tests" / "golden" / "examples"
SECONDS = 60  # of one program, on a busy machine
# Each with its words; {data} has scenarios/.
EXAMPLES = {
    "predict": ["{data}/scenarios/zero-bubble.toml"],
    "bench": ["all_reduce", "dgx-h100", "2"],
    "custom_collective": [],
    "custom_schedule": ["{data}/scenarios/zero-bubble.toml"],
}


def output(program, words, folder):
    """What it prints, in a folder where it may write; fails where the program does."""
    done = subprocess.run([str(program), *words], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, check=False)
    return done.stdout + (f"(ends with {done.returncode})\n" if done.returncode else "")


def example_output(name, programs, data, folder):
    words = [word.format(data=data) for word in EXAMPLES[name]]
    return output(Path(programs).resolve() / name, words, folder)


def difference(name, printed):
    """A diff of the golden text and what is printed; empty where they agree."""
    file = GOLDEN / f"{name}.txt"
    golden = file.read_text(encoding="utf-8") if file.exists() else ""
    return "".join(difflib.unified_diff(golden.splitlines(True), printed.splitlines(True),
                                        str(file.relative_to(ROOT)), name))


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if len(words) != 1:
        sys.exit(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in EXAMPLES:
            printed = example_output(name, words[0], ROOT, folder)
            if "--update" in sys.argv:
                (GOLDEN / f"{name}.txt").write_text(printed, encoding="utf-8")
            if found := difference(name, printed):
                print(found)
                failed += 1
        # A mistake is one line and exit code 2, here too.
        mistake = output(Path(words[0]).resolve() / "predict", ["none.toml"], folder)
        if mistake != "none.toml: error: cannot read: No such file or directory\n" \
                      "(ends with 2)\n":
            print(f"predict none.toml: {mistake}")
            failed += 1
    known = {path.stem for path in (ROOT / "tools" / "examples").glob("*.cpp")}
    if known != set(EXAMPLES):
        print(f"not run: {', '.join(sorted(known ^ set(EXAMPLES)))}")
        failed += 1
    print(f"examples: {len(EXAMPLES)} programs, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
