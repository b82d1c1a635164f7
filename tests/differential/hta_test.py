# HolisticTraceAnalysis reads our traces, and its breakdown and overlap are our own figures.
"""Usage: hta_test.py REHEARSE   (exit 77: there is no HolisticTraceAnalysis here)"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Data-parallel, with communication hidden and not; every rank its own.
SCENARIOS = ["best-bucket", "resnet50-ddp", "llama3-8b-one-node"]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def predicted(program, name, folder):
    """The step's roles as predict tells them, and a trace of each rank in the folder."""
    run = subprocess.run(
        [program, "predict", f"scenarios/{name}.toml", "--quiet", "--no-advice", "--no-fold",
         "--trace-dir", str(folder), "--json", "-"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def close(name, ours, theirs, unit):
    """HTA rounds to hundredths of a percent, and times to a microsecond for every kernel."""
    assert abs(ours - theirs) <= unit, f"{name}: ours {ours}, HTA's {theirs}"


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
            whole = row["kernel_time(us)"]
            close(where + ": compute", role["compute_s"] * 1e6, row["compute_time(us)"],
                  whole * 1e-4)
            close(where + ": exposed", exposed, row["non_compute_time(us)"], whole * 1e-4)
            if busy > 0:
                close(where + ": overlap", 100 * (busy - exposed) / busy,
                      overlap.loc[rank, "comp_comm_overlap_pctg"], 0.1)
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
