# Calibrated on two hosts, predicted for four and eight: collectives by algorithm, and paced
# data-parallel steps, held against what the cluster of namespaces measures.
#
#   cluster_test.py REHEARSE          4 hosts, one size: everything runs, and every sum is right
#   cluster_test.py REHEARSE --full   64 KiB to 16 MiB on 4 and 8 hosts, paced steps: small errors,
#                                     or it fails; some minutes on a machine with nothing else
import json
import os
import statistics
import subprocess
import sys
import tempfile

import namespaces

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.path.join(HERE, "cluster.toml")


def must(done, what):
    if done.returncode != 0:
        print(f"{what} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        sys.exit(1)
    return done


def calibrate(cluster, rehearse, profile, largest):
    must(cluster.mpirun([0, 1], [rehearse, "calibrate", "--backend", "host", "--cluster", MACHINE,
                                 "--nodes", "2", "--largest", largest, "-o", profile]),
         "calibrate")
    with open(profile, encoding="utf-8") as file:
        print("".join(line for line in file if line.startswith("# ") and "links:" in line))


def measured_times(cluster, rehearse, machine, hosts, sizes):
    result = os.path.join(cluster.folder, "measured.json")
    must(cluster.mpirun(hosts, [rehearse, "bench", "all_reduce", "--backend", "host", "--cluster",
                                machine, "-b", sizes[0], "-e", sizes[1], "-f", sizes[2], "-n", "1",
                                "--json", result, "--algorithm", algorithms_for(hosts)],
                        timeout=1200), "bench")
    with open(result, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    assert all(row["wrong"] == 0 for row in rows), "wrong sums"
    return {(row["algorithm"], row["size_bytes"]): row for row in rows}


def algorithms_for(hosts):
    return "ring,tree,hierarchical_3" if len(hosts) > 4 else "ring,tree,halving_doubling"


def predicted_times(rehearse, machine, profile, hosts, sizes):
    times = {}
    for algorithm in algorithms_for(hosts).split(","):
        done = must(subprocess.run(
            (rehearse, "bench", "all_reduce", "--cluster", machine, "--calibration", profile,
             "-b", sizes[0], "-e", sizes[1], "-f", sizes[2], "--algorithm", algorithm, "--json",
             "-"), text=True, capture_output=True, check=False), "predicting")
        for row in json.loads(done.stdout)["rows"]:
            times[algorithm, row["size_bytes"]] = row["time_us"]
    return times


def compare_collectives(cluster, rehearse, profile, hosts, sizes, errors):
    machine = os.path.join(cluster.folder, f"cluster{len(hosts)}.toml")
    with open(MACHINE, encoding="utf-8") as file, open(machine, "w", encoding="utf-8") as out:
        out.write(file.read().replace("nodes = 8", f"nodes = {len(hosts)}"))
    measured = measured_times(cluster, rehearse, machine, hosts, sizes)
    predicted = predicted_times(rehearse, machine, profile, hosts, sizes)
    wrongly_named = 0
    for size in sorted({size for _, size in measured}):
        times = {}
        for algorithm in algorithms_for(hosts).split(","):
            row = measured[algorithm, size]
            times[algorithm] = row["time_us"]
            error = predicted[algorithm, size] / row["time_us"] - 1
            errors.append(abs(error))
            print(f"{len(hosts)} hosts {size:>9} B {algorithm:<18} measured "
                  f"{row['time_us'] / 1e3:9.2f} ms (spread {100 * row['spread']:3.0f} %) predicted "
                  f"{predicted[algorithm, size] / 1e3:9.2f} ms  error {100 * error:+6.1f} %")
        fastest = min(times, key=times.get)
        named = min(times, key=lambda a: predicted[a, size])
        if times[named] > 1.1 * times[fastest]:
            wrongly_named += 1
            print(f"  {named} was named the fastest, {fastest} is")
    return wrongly_named


def compare_steps(cluster, rehearse, profile, errors):
    for overlap in ("false", "true"):
        result = os.path.join(cluster.folder, "step.json")
        must(cluster.mpirun(list(range(8)), [
            rehearse, "compare", os.path.join(HERE, "paced.toml"), "--backend", "host",
            "--compute", "paced", "--set", f"calibration={profile}", "--set",
            f"overlap_grad_reduce={overlap}", "--steps", "3", "--json", result]), "compare")
        with open(result, encoding="utf-8") as file:
            told = json.load(file)
        error = told["step"]["error"]
        errors.append(abs(error))
        print(f"paced step, overlap {overlap:<5} measured {told['step']['measured_ms']:9.2f} ms "
              f"(spread {100 * told['spread']:3.0f} %) predicted "
              f"{told['step']['predicted_ms']:9.2f} ms  error {100 * error:+6.1f} %  hidden "
              f"{100 * told['measured_overlap']:.0f} % (predicted "
              f"{100 * told['predicted_overlap']:.0f} %)")


def main():
    rehearse = os.path.abspath(sys.argv[1])
    full = "--full" in sys.argv
    # A folder that every host may use; short, for the sockets in it.
    with tempfile.TemporaryDirectory(prefix="rh") as folder:
        cluster = namespaces.make_or_skip(folder)
        profile = os.path.join(folder, "profile.toml")
        calibrate(cluster, rehearse, profile, "4MiB" if full else "64KiB")
        errors, wrongly_named = [], 0
        sizes = ("64K", "16M", "4") if full else ("64K", "64K", "2")
        for hosts in ([0, 1, 2, 3], list(range(8)))[:2 if full else 1]:
            wrongly_named += compare_collectives(cluster, rehearse, profile, hosts, sizes, errors)
        if full:
            compare_steps(cluster, rehearse, profile, errors)
        median = statistics.median(errors)
        print(f"{len(errors)} points: median error {100 * median:.1f} %, worst "
              f"{100 * max(errors):.1f} %; the fastest algorithm wrongly named: {wrongly_named}")
        cluster.tear_down()
    sys.exit(0 if not full or (median < 0.15 and wrongly_named == 0) else 1)


main()
