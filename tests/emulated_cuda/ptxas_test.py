# Reads what ptxas said of every kernel: no spills, no stack, registers within the budget; and the
# table of kernels/KERNELS.md says the same.
"""Usage: ptxas_test.py BUILD_FOLDER [--table | --update]

--table compares the figures with that table, --update writes them there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "kernels" / "KERNELS.md"
BEGIN, END = "<!-- ptxas: begin -->", "<!-- ptxas: end -->"

# Registers of a thread. 32 let an SM hold its 2048 threads (64 K registers), 40 three quarters of
# them; attention's tiles of 16 x 16 threads hold their sums in registers, two blocks an SM.
BUDGET = {"attention": 128, "attention_backward": 128}
DEFAULT_BUDGET = 40


def kernel_name(mangled):
    """`attention_kernel<64>` of a mangled name: without namespaces and parameters."""
    text = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout
    text = text.replace("(anonymous namespace)::", "").replace("rehearse::", "")
    text = re.sub(r"^void ", "", text.strip())
    depth = 0
    for at, letter in enumerate(text):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return re.sub(r"\((?:int|bool|unsigned int)\)", "", text[:at])
    return text


def read_report(path):
    """Yields (architecture, kernel, registers, shared bytes, stack and spilled bytes)."""
    architecture, kernel, lost = None, None, 0
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for '(sm_\w+)'", line):
            kernel, architecture = kernel_name(match[1]), match[2]
        elif "bytes stack frame" in line:
            lost = sum(int(number) for number in re.findall(r"(\d+) bytes", line))
        elif match := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            yield architecture, kernel, int(match[1]), int(shared[1]) if shared else 0, lost


def summary(build):
    """{file: {architecture: (kernels, least and most registers, most shared bytes)}}, problems"""
    table, problems = {}, []
    for path in sorted(build.glob("CMakeFiles/rehearse_cuda.dir/kernels/math/*.cu.o.ptxas")):
        source = path.name.removesuffix(".cu.o.ptxas")
        for architecture, kernel, registers, shared, lost in read_report(path):
            if lost > 0:
                problems.append(f"{source}.cu: {kernel} on {architecture}: {lost} bytes of stack "
                                "or spills")
            if registers > BUDGET.get(source, DEFAULT_BUDGET):
                problems.append(f"{source}.cu: {kernel} on {architecture}: {registers} registers, "
                                f"at most {BUDGET.get(source, DEFAULT_BUDGET)}")
            rows = table.setdefault(source, {}).setdefault(architecture, [])
            rows.append((registers, shared))
    return table, problems


def table_text(table):
    """The rows of KERNELS.md: registers and static shared memory of each file's kernels."""
    lines = ["| file | kernels | registers sm_80 | registers sm_90 | shared bytes, static |",
             "|---|---|---|---|---|"]
    for source, by_architecture in table.items():
        span = {}
        for architecture, rows in by_architecture.items():
            registers = sorted({row[0] for row in rows})
            span[architecture] = (str(registers[0]) if len(registers) == 1 else
                                  f"{registers[0]}–{registers[-1]}")
        rows = by_architecture["sm_80"]
        shared = sorted({row[1] for row in rows})
        shared_text = str(shared[0]) if len(shared) == 1 else f"{shared[0]}–{shared[-1]}"
        lines.append(f"| `{source}.cu` | {len(rows)} | {span['sm_80']} | {span['sm_90']} | "
                     f"{shared_text} |")
    return "\n".join(lines)


def main():
    table, problems = summary(Path(sys.argv[1]))
    if not table:
        problems.append("no reports of ptxas: was rehearse_cuda built?")
    kernels = sum(len(rows) for by in table.values() for rows in by.values())
    text = TABLE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    is_asked = "--table" in sys.argv or "--update" in sys.argv
    if is_asked and {"sm_80", "sm_90"} <= set().union(*(by.keys() for by in table.values())):
        wanted = f"{BEGIN}\n{table_text(table)}\n{END}" + rest.split(END)[1]
        if "--update" in sys.argv:
            TABLE.write_text(before + wanted, encoding="utf-8")
        elif before + wanted != text:
            problems.append("kernels/KERNELS.md has other figures: run this with --update")
    for problem in problems:
        print(problem)
    print(f"ptxas: {kernels} kernels, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
