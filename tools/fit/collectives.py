# Fits the constants of topology/formats/libraries.toml to measured collectives.
"""Fits the constants of topology/formats/libraries.toml to collectives, by the simulator itself.

  python3 tools/fit/collectives.py build/rehearse FILE.csv --leave-out      errors, as they are
  python3 tools/fit/collectives.py build/rehearse FILE.csv --fit -o NEW     fitted first

Every constant named in PARAMETERS is varied; a run of `rehearse accuracy --libraries` gives all
predictions, finite differences their sensitivities, and a weighted least-squares step (absolute
errors of logarithms, so that outliers pull no more than others) the next constants. Nothing knows
a case's name. Constants that the data say little about are drawn to what is known of them
otherwise, most of it NCCL's own figures.

Leaving one family of hardware out: the step is made without its rows, and its rows are predicted
by the simulator with those constants.
"""

import argparse
import csv
import json
import math
import re
import subprocess
import sys
import tempfile

# Key in the table; what is known of it without the measurements, as the table writes it; how
# strongly the fit is drawn there. Where NCCL is named, the figure is from its sources.
PARAMETERS = [
    ("issue", 5.0, 0.3),  # a kernel launch
    ("network_launch", 5.0, 0.3),  # NCCL's model has none; as long as a launch
    ("protocol.ll.launch", 6.6, 1.0),  # NCCL baseLat, as the next two
    ("protocol.ll128.launch", 14.0, 1.0),
    ("protocol.simple.launch", 8.4, 1.0),
    ("protocol.ll128.overhead", 1.3, 1.0),  # NCCL hwLat less that of LL, as the next two
    ("protocol.simple.overhead", 2.8, 1.0),
    ("protocol.simple.network_overhead", 8.5, 1.0),
    ("protocol.ll.payload", 0.5, 1.0),  # NCCL device.h
    ("protocol.ll128.payload", 0.9375, 1.0),
    ("piece", 512.0, 0.3),  # NCCL enqueue.cc: the shortest chunk, 32 KiB, on 16 channels
    ("ll_rate", 1.0, 0.3),  # NCCL's own
    ("medium.nvlink2.efficiency", 0.8, 0.5),  # NCCL topo.h: 20 of 25 GB/s
    ("medium.nvlink3.efficiency", 0.8, 0.5),  # the same
    ("medium.nvlink4.efficiency", 0.824, 0.5),  # 20.6 of 25
    ("medium.nvlink5.efficiency", 0.802, 0.5),  # 40.1 of 50
    ("medium.xgmi.efficiency", 0.8, 0.5),  # as NVLink
    ("switch_channel", 19.7, 0.5),  # NCCL nvlsEfficiency: 0.85 of 18 x 20.6 GB/s on 16 channels
    ("medium.pcie-peer3.efficiency", 0.38, 0.5),  # NCCL QPI_BW: 6 GB/s through a CPU, of 15.75
    ("medium.pcie-peer4.efficiency", 0.508, 0.5),  # NCCL AMD_BW: 16 GB/s, of 31.5
    ("medium.infiniband.efficiency", 0.96, 0.5),  # NCCL: 12 GB/s of a 100 Gb/s NIC
    ("medium.roce.efficiency", 0.96, 0.5),
    ("medium.efa.efficiency", 0.96, 0.5),
    ("medium.efa.latency", 73.0, 0.3),  # aws-ofi-nccl tells NCCL 75 us a hop, cables and all
]
FAMILIES = {
    "Maxwell": ("m40", "titanx"),
    "Volta": ("v100",),
    "Ampere": ("a100", "a40"),
    "Ada": ("l40s",),
    "Hopper": ("h100", "h200"),
    "Blackwell": ("b200", "gb200"),
    "CDNA": ("mi300x", "mi325x"),
}
BANDS = (
    ("< 1 MiB", 0, 1 << 20),
    ("1 to 64 MiB", 1 << 20, 64 << 20),
    (">= 64 MiB", 64 << 20, 1 << 62),
)


class Table:
    """A libraries.toml whose numbers can be changed; everything else stays as it was written."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.place, self.unit, self.value = {}, {}, {}
        section = ""
        for number, line in enumerate(self.lines):
            head = re.match(r"\[\[?([\w.-]+)\]\]?", line)
            if head:
                section = head.group(1)
                continue
            entry = re.match(r'(\w+) = "?([\w.]+?)(ns|us|ms|KiB|GB/s)?"?\s*(#.*)?$', line)
            if not entry:
                continue
            key, value, unit = entry.group(1), entry.group(2), entry.group(3)
            if key == "name" and section == "protocol":
                section = "protocol." + value
            else:
                name = f"{section}.{key}" if section else key
                try:
                    self.value[name] = float(value)
                except ValueError:
                    continue
                self.place[name], self.unit[name] = number, unit

    def text(self, values):
        lines = list(self.lines)
        for name, value in values.items():
            number, unit = self.place[name], self.unit[name]
            key = name.split(".")[-1]
            comment = re.search(r"\s*#.*$", lines[number])
            body = f'{key} = "{value:.4g}{unit}"' if unit else f"{key} = {min(value, 1.0):.4g}"
            if unit == "KiB":
                body = f'{key} = "{round(value)}KiB"'
            lines[number] = f"{body:<29} {comment.group(0).strip()}" if comment else body
        return "\n".join(lines)


class Model:
    def __init__(self, program, file, table):
        self.program, self.file, self.table, self.runs = program, file, table, 0
        with open(file, newline="", encoding="utf-8") as source:
            self.rows = list(csv.DictReader(source))

    def predict(self, values):
        """Logarithm of predicted over measured by row; None where there is nothing to score."""
        self.runs += 1
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as constants:
            constants.write(self.table.text(values))
            constants.flush()
            answer = subprocess.run(
                [self.program, "accuracy", self.file, "--libraries", constants.name, "--json", "-",
                 "--quiet"], capture_output=True, text=True, check=True).stdout
        told = json.loads(answer)["rows"]
        assert len(told) == len(self.rows)
        errors = []
        for row, one in zip(self.rows, told):
            scored = one.get("predicted") and one.get("measured") and row["noisy"] != "1"
            errors.append(math.log(one["predicted"] / one["measured"]) if scored else None)
        return errors

    def family(self, row):
        for name, gpus in FAMILIES.items():
            if row["gpu"].startswith(gpus):
                return name
        return row["gpu"]

    def band(self, row):
        size = int(row["size_bytes"])
        return next(i for i, (_, low, high) in enumerate(BANDS) if low <= size < high)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def medians(model, errors, rows):
    """Median of the absolute relative error, by band."""
    result = []
    for band in range(len(BANDS)):
        own = [abs(math.exp(errors[r]) - 1) for r in rows
               if errors[r] is not None and model.band(model.rows[r]) == band]
        result.append((median(own), len(own)) if own else (None, 0))
    return result


def solve(matrix, right):
    """Gauss with pivots; the matrix is small and positive definite."""
    n = len(right)
    m = [row[:] + [right[i]] for i, row in enumerate(matrix)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(m[r][i]))
        m[i], m[pivot] = m[pivot], m[i]
        for r in range(i + 1, n):
            factor = m[r][i] / m[i][i]
            if factor:
                for c in range(i, n + 1):
                    m[r][c] -= factor * m[i][c]
    result = [0.0] * n
    for i in reversed(range(n)):
        result[i] = (m[i][n] - sum(m[i][c] * result[c] for c in range(i + 1, n))) / m[i][i]
    return result


def step(model, errors, slopes, rows, logs):
    """The change of the constants' logarithms that brings the errors of these rows down most."""
    n = len(PARAMETERS)
    count = [max(1, sum(1 for r in rows if model.band(model.rows[r]) == b)) for b in range(3)]
    change = [0.0] * n
    for _ in range(20):  # weights that make squares of errors absolute values
        matrix = [[0.0] * n for _ in range(n)]
        right = [0.0] * n
        for r in rows:
            if errors[r] is None:
                continue
            slope = slopes[r]
            left = errors[r] + sum(slope[p] * change[p] for p in slope)
            weight = 1 / max(abs(left), 0.02) / count[model.band(model.rows[r])]
            for p, a in slope.items():
                right[p] -= weight * a * errors[r]
                for q, b in slope.items():
                    matrix[p][q] += weight * a * b
        for p, (_, known, strength) in enumerate(PARAMETERS):
            pull = 0.05 * strength
            matrix[p][p] += pull + 1e-9
            right[p] += pull * (math.log(known) - logs[p])
        change = solve(matrix, right)
        change = [max(-0.7, min(0.7, c)) for c in change]
    return change


def loss(model, errors, rows):
    total = 0
    for band in range(3):
        own = [min(abs(errors[r]), 1) for r in rows
               if errors[r] is not None and model.band(model.rows[r]) == band]
        total += sum(own) / max(1, len(own))
    return total


def values_of(logs):
    return {name: math.exp(log) for (name, _, _), log in zip(PARAMETERS, logs)}


def differences(model, errors, logs):
    slopes = [{} for _ in model.rows]
    for p in range(len(PARAMETERS)):
        moved = logs[:]
        moved[p] += 0.08
        if PARAMETERS[p][0].split(".")[-1] in ("efficiency", "payload", "ll_rate"):
            moved[p] = min(moved[p], 0.0)
            if moved[p] - logs[p] < 0.01:
                moved[p] = logs[p] - 0.08
        there = model.predict(values_of(moved))
        for r, (a, b) in enumerate(zip(errors, there)):
            if a is not None and b is not None and abs(b - a) > 1e-6:
                # A jump is another choice of the library's, not a slope.
                if abs(b - a) < 2.5 * abs(moved[p] - logs[p]):
                    slopes[r][p] = (b - a) / (moved[p] - logs[p])
    return slopes


def moved_by(logs, change, share=1.0):
    result = []
    for (name, _, _), log, c in zip(PARAMETERS, logs, change):
        now = log + share * c
        if name.split(".")[-1] in ("efficiency", "payload", "ll_rate"):
            now = min(now, 0.0)
        result.append(now)
    return result


def fit(model, logs, rounds):
    rows = range(len(model.rows))
    errors = model.predict(values_of(logs))
    for number in range(rounds):
        slopes = differences(model, errors, logs)
        change = step(model, errors, slopes, rows, logs)
        best = loss(model, errors, rows)
        for share in (1.0, 0.5, 0.25):
            trial = moved_by(logs, change, share)
            there = model.predict(values_of(trial))
            if loss(model, there, rows) < best:
                logs, errors = trial, there
                break
        else:
            break
        print(f"round {number + 1}: {loss(model, errors, rows):.4f}", file=sys.stderr)
    return logs, errors


def show(title, result):
    cells = "".join(f"{'-' if m is None else f'{100 * m:.1f} % ({n})':>18}" for m, n in result)
    print(f"{title:<22}{cells}")


def left_out(model, logs, errors):
    """Medians of all rows, each predicted without its family; and the most that this costs one."""
    slopes = differences(model, errors, logs)
    together = [None] * len(model.rows)
    cost = 0.0
    for family in sorted({model.family(row) for row in model.rows}):
        own = [r for r, row in enumerate(model.rows) if model.family(row) == family]
        rest = [r for r, row in enumerate(model.rows) if model.family(row) != family]
        change = step(model, errors, slopes, rest, logs)
        there = model.predict(values_of(moved_by(logs, change)))
        without = medians(model, there, own)
        show(f"without {family}", without)
        for (more, _), (less, _) in zip(without, medians(model, errors, own)):
            if more is not None:
                cost = max(cost, more - less)
        for r in own:
            together[r] = there[r]
    result = medians(model, together, range(len(model.rows)))
    show("all, each left out", result)
    print(f"the most that leaving out costs a family: {100 * cost:.1f} points")
    return result, cost


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("file")
    parser.add_argument("--libraries", default="topology/formats/libraries.toml")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("-o", "--output")
    parser.add_argument("--leave-out", action="store_true", help="one family at a time")
    parser.add_argument("--at-most", help="fail above these percentages, left out: 20,25,30")
    parser.add_argument("--cost-at-most", type=float, default=math.inf,
                        help="fail where leaving out costs a family more points")
    options = parser.parse_args()
    with open(options.libraries, encoding="utf-8") as source:
        table = Table(source.read())
    model = Model(options.program, options.file, table)
    logs = [math.log(table.value[name]) for name, _, _ in PARAMETERS]
    errors = None
    if options.fit:
        logs, errors = fit(model, logs, options.rounds)
    errors = errors or model.predict(values_of(logs))
    print(f"{'median error (rows)':<22}" + "".join(f"{name:>18}" for name, _, _ in BANDS))
    show("all", medians(model, errors, range(len(model.rows))))
    for family in sorted({model.family(row) for row in model.rows}):
        own = [r for r, row in enumerate(model.rows) if model.family(row) == family]
        show(family, medians(model, errors, own))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as target:
            target.write(table.text(values_of(logs)))
    if options.leave_out:
        result, cost = left_out(model, logs, errors)
        most = [float(each) for each in options.at_most.split(",")] if options.at_most else []
        if any(100 * error > bound for (error, _), bound in zip(result, most)):
            sys.exit("above --at-most")
        if 100 * cost > options.cost_at_most:
            sys.exit("above --cost-at-most")


if __name__ == "__main__":
    main()
