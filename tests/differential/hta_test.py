# HolisticTraceAnalysis reads our traces, and its breakdown and overlap are our own figures.
"""Usage: hta_test.py REHEARSE   (exit 77: there is no HolisticTraceAnalysis here)"""

import gzip
import json
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


def check(program, name, analysis_of):
    with tempfile.TemporaryDirectory() as folder:
        told = predicted(program, name, Path(folder) / "traces")
        analysis = analysis_of(trace_dir=str(Path(folder) / "traces"))
        breakdown = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
        overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")
        assert len(breakdown) == len(told["roles"]), (len(breakdown), len(told["roles"]))
        for role in told["roles"]:
            rank, exposed = role["rank"], role["exposed_communication_s"] * 1e6
            busy = sum(role["communication_by_dimension_s"].values()) * 1e6
            where = f"{name}, rank {rank}"
            row = breakdown.loc[rank]
            cut = kernels_of(Path(folder) / "traces", rank)  # us
            assert cut < 0.02 * row["kernel_time(us)"], "too short kernels to say anything"
            close(where + ": compute", role["compute_s"] * 1e6, row["compute_time(us)"], cut)
            close(where + ": exposed", exposed, row["non_compute_time(us)"], cut)
            if busy > 0:
                close(where + ": overlap", 100 * (busy - exposed) / busy,
                      overlap.loc[rank, "comp_comm_overlap_pctg"], 100 * cut / busy + 0.01)
        print(f"ok    {name}: {len(told['roles'])} ranks as HTA sees them")


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
