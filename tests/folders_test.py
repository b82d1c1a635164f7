# Whether the code keeps to the table of folders in CMakeLists.txt: who may include whom, no cycle,
# no knot of files that need each other, and large libraries behind a few files.
"""Usage: folders_test.py   (exit code 1 and a line for each problem)"""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["sim", "topology", "strategies", "kernels", "tools"]
CODE = {".cpp", ".hpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#include\s+"([^"]+)"', re.M)
# Folders that are no library: the program itself, its benchmarks, and CUDA's, which kernels/
# cuda.cmake compiles for real and for emulated devices.
ALONE = {"tools": ["tools/predict", "tools/sweep", "tools/run", "tools/measure"],
         "tools/bench": ["tools/sweep", "sim/simgrid", "kernels/mpi"],
         "tools/examples": ["strategies/predict", "kernels/host"],
         "tools/bench/mpi": ["strategies/binding", "kernels/host"],
         "kernels/cuda": ["kernels/host"]}
# Commands of --backend cuda are compiled with the emulated or the real devices.
ALSO = {"tools/measure": ["kernels/cuda"]}
# Large libraries, by the beginning of their headers' names, and who may include them: these files,
# or those in these folders. What a header includes, many files pay for.
LARGE = {
    "CLI/": ["tools/main.cpp", "tools/cli/command.cpp"],
    "boost/": ["topology/shortest_paths.cpp"],
    "toml++/": ["topology/files/document.cpp"],
    "pugixml": ["topology/files/xml_file.hpp"],  # for readers of XML, which are two
    "zlib": ["tools/output/output_file.cpp", "tools/measure/trace_slices.cpp"],
    "regex": ["tools/measure/launch.cpp"],
    "simgrid/": ["sim/simgrid/simgrid_run.cpp"],
    "mpi.h": ["kernels/mpi/", "tools/bench/mpi/"],
    "hwloc": ["kernels/host/hwloc_module.cpp"],
    "cblas": ["kernels/math/openblas_module.cpp"],
    "httplib": ["tools/inspect/httplib_module.cpp"],
    "benchmark/": ["tools/bench/"],
    "nlohmann/": [
        "topology/files/document_json.cpp", "topology/files/document_write.cpp",
        "tools/accuracy/accuracy_report.cpp", "tools/calibrate/nccl_log.cpp",
        "tools/collectives/bench.cpp", "tools/inspect/program.cpp", "tools/lab/answer.cpp",
        "tools/measure/bench_host.cpp", "tools/measure/trace_slices.cpp",
        "tools/output/trace_json.cpp", "tools/predict/predict_json.cpp",
        "tools/predict/server_json.cpp", "tools/run/comparison.cpp", "tools/run/run.cpp",
        "tools/sweep/sweep_exchange.cpp", "tools/sweep/sweep_report.cpp",
        "tools/teach/teach_progress.cpp"],
}
LARGEST_KNOT = 3


def table(text):
    """The folders of CMakeLists.txt in their order, each with those that it names."""
    uses = {}
    for call in re.finditer(r"^ *rehearse_(?:tools_)?folder\(([^)]*)\)", text, re.M):
        folder, *words = call[1].split()
        uses[folder], keyword = [], None
        for word in words:
            if word.isupper():
                keyword = word
            elif keyword in ("USES", "LOADS"):
                uses[folder].append(word)
    return uses


def closure(uses):
    """All that each folder may use."""
    whole = {}

    def visit(folder):
        if folder not in whole:
            whole[folder] = set()
            for used in uses.get(folder, []):
                whole[folder] |= {used} | visit(used)
        return whole[folder]

    for folder in uses:
        visit(folder)
    return whole


def includes(paths):
    """(file, included file) of the project's own."""
    known = {str(path.relative_to(ROOT)) for path in paths}
    for path in paths:
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if name in known:
                yield str(path.relative_to(ROOT)), name


def folder_problems(pairs, uses):
    allowed = closure(uses)
    for source, target in pairs:
        here, there = str(Path(source).parent), str(Path(target).parent)
        if here not in allowed:
            yield f"{source}: its folder is not in the table of CMakeLists.txt"
        elif here != there and there not in allowed[here]:
            yield f"{source}: {here} may not use {there} ({target})"


def large_problems(paths):
    """(file, header) by the text of each file; those that nobody names any more are told too."""
    found = collections.defaultdict(set)
    for name, text in paths:
        for header in re.findall(r"^\s*#include\s+<([^>]+)>", text, re.M):
            for large, users in LARGE.items():
                if header.startswith(large):
                    user = next((user for user in users if name.startswith(user)), None)
                    found[large].add(user)
                    if user is None:
                        yield f"{name}: may not include <{header}>; see LARGE in folders_test.py"
    for large, users in LARGE.items():
        for user in users:
            if user not in found[large] and found:
                yield f"folders_test.py: {user} does not include <{large}…>"


def order_problems(uses):
    """A folder names those before it: then there is no cycle."""
    seen = set()
    for folder, named in uses.items():
        for used in named:
            if used not in seen:
                yield f"CMakeLists.txt: {folder} uses {used}, which comes after it"
        seen.add(folder)


def knots(pairs):
    """Units (a header with its source) that need each other, largest first."""
    needs = collections.defaultdict(set)
    for source, target in pairs:
        a, b = str(Path(source).with_suffix("")), str(Path(target).with_suffix(""))
        if a != b:
            needs[a].add(b)
    number, low, stack, found = {}, {}, [], []

    def visit(unit):
        number[unit] = low[unit] = len(number)
        stack.append(unit)
        for used in sorted(needs[unit]):
            if used not in number:
                visit(used)
            if used in stack:
                low[unit] = min(low[unit], low[used])
        if low[unit] == number[unit]:
            knot = []
            while not knot or knot[-1] != unit:
                knot.append(stack.pop())
            found.append(sorted(knot))

    for unit in sorted(needs):
        if unit not in number:
            visit(unit)
    return sorted((knot for knot in found if len(knot) > 1), key=len, reverse=True)


def self_check():
    """Each rule must fire on a bad sample."""
    uses = table("rehearse_folder(a)\n rehearse_tools_folder(b USES a\n LIBRARIES x)\n"
                 "rehearse_folder(c USES a LOADS b LIBRARIES x)\n")
    assert uses == {"a": [], "b": ["a"], "c": ["a", "b"]}, uses
    assert list(folder_problems([("b/x.cpp", "a/y.hpp")], uses)) == []
    assert len(list(folder_problems([("a/x.cpp", "b/y.hpp")], uses))) == 1
    assert len(list(order_problems({"a": ["b"], "b": []}))) == 1
    own = [(user + "x" * user.endswith("/"), f"#include <{large}>\n")
           for large, users in LARGE.items() for user in users]
    assert not list(large_problems(own)), list(large_problems(own))
    assert len(list(large_problems([*own, ("sim/a.hpp", "#include <nlohmann/json.hpp>\n")]))) == 1
    assert knots([("a/x.cpp", "a/y.hpp"), ("a/y.cpp", "a/x.hpp")]) == [["a/x", "a/y"]]


def main():
    self_check()
    sys.setrecursionlimit(10000)
    uses = table((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    problems = list(order_problems(uses))
    for folder, named in ALSO.items():
        uses[folder] = uses[folder] + named
    uses.update(ALONE)
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))
             if path.suffix in CODE]
    pairs = list(includes(paths))
    problems += folder_problems(pairs, uses)
    problems += large_problems((str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
                               for path in paths)
    for knot in knots(pairs):
        if knot[0].startswith("strategies/") and len(knot) > LARGEST_KNOT:
            problems.append(f"a knot of {len(knot)}: {' '.join(knot)}")
    for line in problems:
        print(line)
    print(f"folders: {len(uses)} folders, {len(pairs)} includes, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
