# Calibrated on two hosts, predicted for four and eight: collectives by algorithm, and paced
# data-parallel steps, held against what the cluster of namespaces measures.
#
#   cluster_test.py REHEARSE [--full]
#
# Fails where the median error is not under 15 %, where the algorithm named the fastest is slower
# than another by more than 10 %, or where a sum is wrong. --full takes every size from 64 KiB to
# 16 MiB by fours, a minute more. Ranks go ahead of other processes (namespaces.py), so it holds on
# a busy machine too.
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import namespaces

HERE = os.path.dirname(os.path.abspath(__file__))
ALGORITHMS = ["ring", "tree", "hierarchical_3"]
# Hosts, and how cluster.toml tells of them: two of each rack see half of the uplinks' shortage.
ALL = (list(range(8)), {})
HALF = ([0, 1, 4, 5], {"nodes = 8": "nodes = 4", "radix = 5": "radix = 3",
                       "oversubscription = 4": "oversubscription = 2"})


def must(done, what):
    if done.returncode != 0:
        print(f"{what} failed ({done.returncode}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        sys.exit(1)
    return done


def write_files(folder):
    """The cluster and its half, each with the paced scenario beside it."""
    with open(os.path.join(HERE, "cluster.toml"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(HERE, "paced.toml"), encoding="utf-8") as file:
        scenario = file.read()
    for hosts, changes in (ALL, HALF):
        made = text
        for old, new in changes.items():
            assert old in made, old
            made = made.replace(old, new)
        for name, content in ((f"cluster{len(hosts)}.toml", made),
                              (f"paced{len(hosts)}.toml",
                               scenario.replace("cluster.toml", f"cluster{len(hosts)}.toml"))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(content)


class Bar:
    """Errors, and how often the wrong algorithm was named."""

    def __init__(self, cluster, rehearse, folder):
        self.cluster, self.rehearse, self.folder = cluster, rehearse, folder
        self.profile = os.path.join(folder, "profile.toml")
        self.errors, self.wrongly_named = [], 0

    def file(self, name, hosts):
        return os.path.join(self.folder, f"{name}{len(hosts)}.toml")

    def calibrate(self):
        must(self.cluster.mpirun([0, 1], [
            self.rehearse, "calibrate", "--backend", "host", "--cluster",
            os.path.join(self.folder, "cluster8.toml"), "--nodes", "2", "--largest", "1MiB", "-o",
            self.profile]), "calibrate")
        with open(self.profile, encoding="utf-8") as file:
            print("".join(line for line in file if line.startswith("# ") and "links:" in line))

    def bench(self, hosts, sizes, words):
        return [self.rehearse, "bench", "all_reduce", "--cluster", self.file("cluster", hosts),
                "--calibration", self.profile, "-b", sizes[0], "-e", sizes[1], "-f", sizes[2],
                *words]

    def measured(self, hosts, sizes):
        result = os.path.join(self.folder, "measured.json")
        must(self.cluster.mpirun(hosts, self.bench(hosts, sizes, [
            "--backend", "host", "-n", "1", "--json", result, "--algorithm",
            ",".join(ALGORITHMS)])), "bench")
        with open(result, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        assert rows and all(row["wrong"] == 0 for row in rows), "wrong sums"
        return {(row["algorithm"], row["size_bytes"]): row for row in rows}

    def predicted(self, hosts, sizes):
        times = {}
        for algorithm in ALGORITHMS:
            done = must(subprocess.run(
                self.bench(hosts, sizes, ["--algorithm", algorithm, "--json", "-"]), text=True,
                capture_output=True, check=False), "predicting")
            for row in json.loads(done.stdout)["rows"]:
                times[algorithm, row["size_bytes"]] = row["time_us"]
        return times

    def compare_collectives(self, hosts, sizes):
        measured, predicted = self.measured(hosts, sizes), self.predicted(hosts, sizes)
        for size in sorted({size for _, size in measured}):
            times = {a: measured[a, size]["time_us"] for a in ALGORITHMS}
            for algorithm, taken in times.items():
                error = predicted[algorithm, size] / taken - 1
                self.errors.append(abs(error))
                print(f"{len(hosts)} hosts {size:>9} B {algorithm:<16} measured {taken / 1e3:9.2f} "
                      f"ms (spread {100 * measured[algorithm, size]['spread']:3.0f} %) predicted "
                      f"{predicted[algorithm, size] / 1e3:9.2f} ms  error {100 * error:+6.1f} %")
            fastest = min(times, key=times.get)
            named = min(times, key=lambda a: predicted[a, size])
            if times[named] > 1.1 * times[fastest]:
                self.wrongly_named += 1
                print(f"  {named} was named the fastest, {fastest} is")

    def compare_steps(self, hosts):
        for overlap in ("false", "true"):
            result = os.path.join(self.folder, "step.json")
            must(self.cluster.mpirun(hosts, [
                self.rehearse, "compare", self.file("paced", hosts), "--backend", "host",
                "--compute", "paced", "--set", f"calibration={self.profile}", "--set",
                f"overlap_grad_reduce={overlap}", "--steps", "3", "--json", result]), "compare")
            with open(result, encoding="utf-8") as file:
                told = json.load(file)
            step, error = told["step"], told["step"]["error"]
            self.errors.append(abs(error))
            print(f"{len(hosts)} hosts paced step, overlap {overlap:<5} measured "
                  f"{step['measured_ms']:9.2f} ms (spread {100 * told['spread']:3.0f} %) predicted "
                  f"{step['predicted_ms']:9.2f} ms  error {100 * error:+6.1f} %  hidden "
                  f"{100 * told['measured_overlap']:.0f} % (predicted "
                  f"{100 * told['predicted_overlap']:.0f} %)")


def main():
    rehearse = os.path.abspath(sys.argv[1])
    sizes = ("64K", "16M", "4" if "--full" in sys.argv else "16")
    # A folder that every host may use; short, for the sockets in it.
    with tempfile.TemporaryDirectory(prefix="rh") as folder:
        begin = time.time()
        cluster = namespaces.make_or_skip(folder)
        write_files(folder)
        bar = Bar(cluster, rehearse, folder)
        bar.calibrate()
        for hosts, _ in (HALF, ALL):
            bar.compare_collectives(hosts, sizes)
            bar.compare_steps(hosts)
        median = statistics.median(bar.errors)
        print(f"{len(bar.errors)} points: median error {100 * median:.1f} %, worst "
              f"{100 * max(bar.errors):.1f} %; the fastest algorithm wrongly named: "
              f"{bar.wrongly_named}; {time.time() - begin:.0f} s")
        cluster.tear_down()
    sys.exit(0 if median < 0.15 and bar.wrongly_named == 0 else 1)


main()
