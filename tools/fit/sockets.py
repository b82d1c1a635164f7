#!/usr/bin/env python3
# Fits the sockets of NCCL, [medium.tcp] of topology/formats/libraries.toml, to measured steps.
"""Fits [medium.tcp] of topology/formats/libraries.toml to measured data-parallel steps over TCP.

  python3 tools/fit/sockets.py build/rehearse data_parallel.csv
  python3 tools/fit/sockets.py build/rehearse data_parallel.csv --leave-out gpus_per_node

Three constants: `latency`, `most` and `pair`. What is made small is the mean of the relative errors
of all steps, by walks along one constant at a time in steps that are halved: errors of one run of
`rehearse accuracy --libraries`. With --leave-out the fit is made again without each value of that
column, and tells how far its steps are off then.
"""

import argparse
import csv
import json
import re
import subprocess
import tempfile

KEYS = (("latency", "us", 50.0), ("most", "Gbps", 0.2), ("pair", "Gbps", 0.2))


class Sockets:
    """The errors of all steps for given constants, each asked for once."""

    def __init__(self, rehearse, text, rows, folder):
        self.rehearse, self.text, self.rows, self.folder = rehearse, text, rows, folder
        self.known = {}
        with open(f"{folder}/steps.csv", "w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)

    def errors(self, constants):
        if constants not in self.known:
            begin = self.text.index("[medium.tcp]")
            table = self.text[begin:]
            for (key, unit, _), value in zip(KEYS, constants):
                table = re.sub(rf'^{key} = "[^"]*"', f'{key} = "{value:g}{unit}"', table, 1, re.M)
            with open(f"{self.folder}/libraries.toml", "w", encoding="utf-8") as out:
                out.write(self.text[:begin] + table)
            subprocess.run(
                [self.rehearse, "accuracy", f"{self.folder}/steps.csv", "--quiet", "--libraries",
                 f"{self.folder}/libraries.toml", "--json", f"{self.folder}/all.json"],
                check=True, stdout=subprocess.DEVNULL)
            with open(f"{self.folder}/all.json", encoding="utf-8") as file:
                self.known[constants] = [abs(row["error"]) for row in json.load(file)["rows"]]
        return self.known[constants]

    def mean(self, constants, keep):
        errors = [e for e, row in zip(self.errors(constants), self.rows) if keep(row)]
        return sum(errors) / len(errors)

    def fit(self, keep):
        begin = self.text.index("[medium.tcp]")
        constants = tuple(
            float(re.search(rf'^{key} = "([\d.]+){unit}"', self.text[begin:], re.M).group(1))
            for key, unit, _ in KEYS)
        best, scale = self.mean(constants, keep), 1.0
        while scale > 0.05:
            moved = False
            for k, (_, _, step) in enumerate(KEYS):
                for sign in (1, -1):
                    other = list(constants)
                    other[k] = round(other[k] + sign * scale * step, 4)
                    if other[k] <= 0:
                        continue
                    error = self.mean(tuple(other), keep)
                    if error < best:
                        best, constants, moved = error, tuple(other), True
                        break
            if not moved:
                scale /= 2
        return constants


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rehearse")
    parser.add_argument("steps")
    parser.add_argument("--libraries", default="topology/formats/libraries.toml")
    parser.add_argument("--leave-out", metavar="COLUMN")
    given = parser.parse_args()
    with open(given.libraries, encoding="utf-8") as file:
        text = file.read()
    with open(given.steps, encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    crossing = {row["series"] for row in every if row["fabric"] == "tcp"}
    rows = [row for row in every if row["series"] in crossing]
    with tempfile.TemporaryDirectory() as folder:
        sockets = Sockets(given.rehearse, text, rows, folder)
        whole = sockets.fit(lambda row: True)
        told = ", ".join(f"{key} {value:g}{unit}" for (key, unit, _), value in zip(KEYS, whole))
        print(f"{told}: {100 * sockets.mean(whole, lambda row: True):.2f} % off")
        values = sorted({row[given.leave_out] for row in rows}) if given.leave_out else []
        for value in values:
            other = sockets.fit(lambda row, v=value: row[given.leave_out] != v)
            of_value = lambda row, v=value: row[given.leave_out] == v
            print(f"without {given.leave_out} {value}: {other}, its steps "
                  f"{100 * sockets.mean(other, of_value):.2f} % off, "
                  f"{100 * sockets.mean(whole, of_value):.2f} % with all")


if __name__ == "__main__":
    main()
