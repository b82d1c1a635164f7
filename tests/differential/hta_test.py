# HolisticTraceAnalysis reads our traces, and its breakdown and overlap are our own figures.
"""Usage: hta_test.py REHEARSE   (exit 77: there is no HolisticTraceAnalysis here)"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Data-parallel, with communication hidden and not. Ranks that are alike have one trace.
SCENARIOS = ["best-bucket", "resnet50-ddp", "llama3-8b-one-node"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def predicted(program, name, folder):
    """The step's roles as predict tells them, and a trace of each rank in the folder."""
    run = subprocess.run(
        [program, "predict", f"scenarios/{name}.toml", "--quiet", "--no-advice",
         "--trace-dir", str(folder), "--json", "-"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def kernels_of(folder, rank):
    """How many a rank's trace has: HTA cuts the begin and end of each to whole microseconds."""
    with gzip.open(folder / f"rank_{rank}.json.gz", "rt", encoding="utf-8") as file:
        return sum(event.get("cat") == "kernel" for event in json.load(file)["traceEvents"])


def close(name, ours, theirs, within):
    assert abs(ours - theirs) <= within, f"{name}: ours {ours}, HTA's {theirs}, not in {within}"


def figures(analysis_of, folder, rounds):
    """HTA's breakdown and overlap by rank: with times as they are in the trace, or as it rounds
    them by default (each begin up and each end down to a whole microsecond)."""
    os.environ["HTA_DISABLE_NS_ROUNDING"] = "0" if rounds else "1"
    analysis = analysis_of(trace_dir=str(folder))
    return (analysis.get_temporal_breakdown(visualize=False).set_index("rank"),
            analysis.get_comm_comp_overlap(visualize=False).set_index("rank"))


def compare(where, role, breakdown, overlap, cut):
    """`cut`: by how many microseconds sums of times may differ."""
    exposed = role["exposed_communication_s"] * 1e6
    busy = sum(role["communication_by_dimension_s"].values()) * 1e6
    close(where + ": compute", role["compute_s"] * 1e6, breakdown["compute_time(us)"], cut)
    close(where + ": exposed", exposed, breakdown["non_compute_time(us)"], cut)
    if busy > 0:  # HTA rounds it to hundredths of a percent
        close(where + ": overlap", 100 * (busy - exposed) / busy,
              overlap["comp_comm_overlap_pctg"], 100 * cut / busy + 0.005 + 1e-9)


def check(program, name, analysis_of):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "traces"
        told = predicted(program, name, folder)
        for rounds in (False, True):
            breakdown, overlap = figures(analysis_of, folder, rounds)
            assert len(breakdown) == len(told["roles"]), (len(breakdown), len(told["roles"]))
            for role in told["roles"]:
                rank = role["rank"]
                # Unrounded, both are sums of the same decimals: what is left is of the doubles.
                cut = kernels_of(folder, rank) if rounds else 1e-5
                compare(f"{name}, rank {rank}", role, breakdown.loc[rank], overlap.loc[rank], cut)
        print(f"ok    {name}: {len(told['roles'])} ranks as HTA sees them, to 10 ps")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    try:
        from hta.trace_analysis import TraceAnalysis
    except ImportError as error:
        skip(f"there is no HolisticTraceAnalysis here (pip install HolisticTraceAnalysis): {error}")
    for name in SCENARIOS:
        check(str(Path(sys.argv[1]).resolve()), name, TraceAnalysis)


if __name__ == "__main__":
    main()
