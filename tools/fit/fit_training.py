#!/usr/bin/env python3
# Fits constants of GPUs and frameworks to published training steps; tools/README.md says how.
"""Fits what a step's compute costs to published steps: Gauss-Newton on the logarithm of
predicted over measured, driving `rehearse accuracy`. Python's own library only.

  tools/fit/fit_training.py --rehearse build/rehearse training.csv -o fitted.toml
  tools/fit/fit_training.py --rehearse build/rehearse training.csv --leave-one-out DIR

Every constant is one of a GPU generation or of a framework, and is fitted to all sweeps that have
it. A sweep weighs as the root of its rows. Errors beyond `clip` pull no harder than at it.
"""
import argparse, concurrent.futures, csv, json, math, os, subprocess, sys, tempfile

A100 = ["A100 SXM 80GB", "A100 SXM 40GB"]
H100 = ["H100 SXM 80GB", "H100 SXM 96GB"]
B200 = ["B200 SXM 180GB"]
V100 = ["V100 SXM 32GB", "V100 SXM 16GB"]

# Of its generation's power: 500 W of 700.
POWER = {"H100 SXM 96GB": 5 / 7}

# name: (kind, what it is set on, start, least, most). Constants of one `kind` never meet in a row
# when their groups differ, so that all of a kind are changed in one run.
CONSTANTS = {}


def add(kind, group, key, targets, start, least, most):
    CONSTANTS[f"{group}.{key}"] = (kind, key, targets, start, least, most)


for group, names, shares in (("a100", A100, (0.36, None, 0.29, 0.6)),
                             ("h100", H100, (0.42, 0.5, 0.2, 0.35)),
                             ("b200", B200, (0.3, 0.5, None, None)),
                             ("v100", V100, (0.3, None, None, None))):
    add("sustained", group, "sustained_share", names, shares[0], 0.03, 1)
    for kind, start in zip(("fused_efficiency", "flash_1_efficiency", "flash_2_efficiency"),
                           shares[1:]):
        if start:
            # FlashAttention-2 reaches 0.72 of A100 at best: arXiv:2307.08691.
            add(kind, group, kind, names, start, 0.05, 0.7 if kind != "fused_efficiency" else 0.8)
# Sweeps over memory: one share for these devices, so that one without steps has it, too. Of V100
# the steps of BERT (data_parallel.csv) say that it reaches all of its bandwidth.
add("elementwise", "all", "elementwise_share", A100 + H100 + B200, 0.6, 0.1, 1)
# Sweeps of the backward pass, in those of the forward pass. Gradients of norms and softmax read a
# third more than they must (sim/DECISIONS.md), so no less than 3/4: the fit alone hardly tells the
# two apart.
add("grad", "all", "elementwise_grad_share", A100 + H100 + B200, 0.8, 0.75, 1)
# One host, one constant: frameworks that run the same Python have the same. Beyond 60 us the host
# would stand for something else, and a sweep of large models would say nothing of small ones.
HOSTS = {"megatron-lm": ["megatron-lm"],
         "megatron-deepspeed": ["megatron-deepspeed", "megatron-lm+deepspeed"],
         "nemo": ["nemo", "megatron-bridge"],
         "llm-foundry": ["llm-foundry"],
         "torchtitan": ["torchtitan", "torchtitan-compile"],
         "internevo": ["internevo"],
         "aa-scaling": ["aa-scaling-torch", "aa-scaling-fused", "aa-scaling-fa1",
                        "aa-scaling-fa2", "aa-scaling-fa2-rms"]}
for host, names in HOSTS.items():
    add("launch", host, "launch_time", names, 40, 5, 60)
# Beside the others and in no profile: steps of aa-scaling on 256 GPUs lose a second for each
# billion parameters of a GPU, on 64 none, and nobody knows why. Without it A100 would seem slower.
add("exchange", "aa-scaling", "exchange_share", HOSTS["aa-scaling"], 0.1, 0.03, 1)


def profile(values, source, error):
    """As TOML."""
    devices, hosts = {}, {}
    for name, value in values.items():
        kind, key, targets, *_ = CONSTANTS[name]
        if kind in ("launch", "exchange"):
            line = f'{key} = "{value:.2f}us"' if kind == "launch" else f"{key} = {value:.4f}"
            for framework in targets:
                hosts.setdefault(framework, []).append(line)
            continue
        for device in targets:
            share = POWER.get(device, 1) if key == "sustained_share" else 1
            if kind == "grad":
                share = next(v for n, v in values.items() if n.endswith("elementwise_share")
                             and device in CONSTANTS[n][2])
            devices.setdefault(device, []).append(f"{key} = {share * value:.4f}")
    text = f'# What tools/fit/fit_training.py fitted to {source}.\n'
    text += f'schema = 1\nname = "fitted"\nsource = "{source}"\nerror = {error:.4f}\n'
    for device, lines in devices.items():
        text += f'\n[[accelerator]]\nname = "{device}"\n' + "\n".join(lines) + "\n"
    for framework, lines in hosts.items():
        text += f'\n[[framework]]\nname = "{framework}"\n' + "\n".join(lines) + "\n"
    return text


class Runner:
    def __init__(self, rehearse, files, threads):
        self.rehearse, self.files, self.threads = rehearse, files, threads

    def __call__(self, values):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.toml")
            with open(path, "w") as file:
                file.write(profile(values, "a trial", 0))
            out = subprocess.run([self.rehearse, "accuracy", *self.files, "--calibration", path,
                                  "--json", "-", "--quiet", "--threads", str(self.threads)],
                                 check=True, capture_output=True, text=True).stdout
        return {row["case_id"]: (row["sweep"], math.log(row["predicted"] / row["measured"]))
                for row in json.loads(out)["rows"]
                if row.get("predicted") and row.get("measured")}


def solve(a, b):
    """Gaussian elimination with pivots."""
    n = len(b)
    rows = [list(a[i]) + [b[i]] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(i + 1, n):
            factor = rows[r][i] / rows[i][i]
            for c in range(i, n + 1):
                rows[r][c] -= factor * rows[i][c]
    x = [0.0] * n
    for i in reversed(range(n)):
        x[i] = (rows[i][n] - sum(rows[i][c] * x[c] for c in range(i + 1, n))) / rows[i][i]
    return x


def weights(base, left_out, clip):
    counts = {}
    for sweep, _ in base.values():
        counts[sweep] = counts.get(sweep, 0) + 1
    result = {}
    for case, (sweep, error) in base.items():
        if sweep == left_out:
            continue
        # Least absolute errors, but for the small ones.
        result[case] = counts[sweep] ** -0.5 / max(abs(error), clip)
    return result


def jacobian(run, values, base, step=0.1):
    """d log predicted / d log constant, of every row."""
    kinds = sorted({spec[0] for spec in CONSTANTS.values()})
    slopes = {name: {} for name in values}
    def column(kind):
        trial = {n: v / (1 + step) if CONSTANTS[n][0] == kind else v for n, v in values.items()}
        return kind, run(trial)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = dict(pool.map(column, kinds))
    for name in values:
        for case, (_, error) in runs[CONSTANTS[name][0]].items():
            if case in base and owns(name, case):
                slope = (base[case][1] - error) / math.log(1 + step)
                if abs(slope) > 1e-9:
                    slopes[name][case] = slope
    return slopes


ROWS = {}  # case_id: (gpu, host)


def owns(name, case):
    group = name.split(".")[0]
    gpu, framework = ROWS[case]
    return group == "all" or gpu.startswith(group) or group == framework


def read_rows(files):
    for path in files:
        with open(path) as file:
            for row in csv.DictReader(file):
                host = next((h for h, names in HOSTS.items() if row["framework"] in names),
                            row["framework"])
                ROWS[row["case_id"]] = (row["gpu"], host)


def improve(values, base, slopes, left_out, clip, damping):
    """One damped Gauss-Newton step in the constants' logarithms."""
    weight = weights(base, left_out, clip)
    names = [n for n in values if any(case in weight for case in slopes[n])]
    a = [[sum(weight[case] * s * slopes[q].get(case, 0) for case, s in slopes[p].items()
              if case in weight) for q in names] for p in names]
    b = [-sum(weight[case] * s * base[case][1] for case, s in slopes[p].items()
              if case in weight) for p in names]
    for i in range(len(names)):
        a[i][i] += damping * a[i][i] + 1e-6
    result = dict(values)
    for name, change in zip(names, solve(a, b)):
        _, _, _, _, least, most = CONSTANTS[name]
        change = max(-0.4, min(0.4, change))
        result[name] = max(least, min(most, values[name] * math.exp(change)))
    return result


def descend(start, values, base, slopes, left_out, clip, damping):
    """Some steps by the slopes at `values`, which say how far every row moves."""
    result = start
    for _ in range(4):
        moved = {}
        for case, (sweep, error) in base.items():
            for name, slope in slopes.items():
                if case in slope:
                    error += slope[case] * math.log(result[name] / values[name])
            moved[case] = (sweep, error)
        result = improve(result, moved, slopes, left_out, clip, damping)
    return result


def summary(base, only=None):
    errors = {}
    for sweep, error in base.values():
        if only is None or sweep == only:
            errors.setdefault(sweep, []).append(abs(math.exp(error) - 1))
    every = [e for sweep in errors.values() for e in sweep]
    return ({s: sum(e) / len(e) for s, e in errors.items()}, sum(every) / len(every))


def bands(base, least=10):
    """Measured in predicted steps, one in ten below and one in ten above; of a host with fewer than
    `least` steps those of all."""
    shares = {}
    for case, (_, error) in base.items():
        shares.setdefault(ROWS[case][1], []).append(math.exp(-error))
    every = [share for of_host in shares.values() for share in of_host]
    def cut(values):
        values = sorted(values)
        at = 0.1 * (len(values) - 1)
        below, above = int(at), int(len(values) - 1 - at + 0.9999)
        return values[below], values[above]
    return {"all": cut(every)} | {host: cut(values if len(values) >= least else every)
                                  for host, values in shares.items()}


def score(base, left_out=None):
    weight = {}
    for sweep, _ in base.values():
        weight[sweep] = weight.get(sweep, 0) + 1
    return sum(abs(e) * weight[s] ** -0.5 for s, e in base.values() if s != left_out)


def fit(run, values, rounds, clip, left_out=None, tell=lambda text, values: None):
    base = run(values)
    for turn in range(rounds):
        slopes = jacobian(run, values, base)
        for damping in (0.03, 0.3, 3):
            trial = descend(values, values, base, slopes, left_out, clip, damping)
            new = run(trial)
            if score(new, left_out) < score(base, left_out):
                break
        else:
            break
        gain = score(base, left_out) - score(new, left_out)
        values, base = trial, new
        tell(f"round {turn}: mean error {summary(base)[1]:.4f}, gain {gain:.4f}", values)
        if gain < 0.002 * score(base, left_out):
            break
    return values, base


def without(values, base, sweep):
    """What only the sweep that is left out tells is as with the others of its kind."""
    result = dict(values)
    for name in values:
        if any(owns(name, case) for case, (other, _) in base.items() if other != sweep):
            continue
        alike = [math.log(v) for n, v in values.items()
                 if n != name and CONSTANTS[n][0] == CONSTANTS[name][0]]
        if alike:
            result[name] = math.exp(sum(alike) / len(alike))
    return result


def refit(values, base, slopes, sweep, clip):
    """Without the sweep, by the slopes at the fit."""
    return descend(without(values, base, sweep), values, base, slopes, sweep, clip, 0.03)


def told(values):
    """Without what is only fitted beside."""
    return {name: value for name, value in values.items() if CONSTANTS[name][0] != "exchange"}


def start_values(path):
    values = {name: spec[3] for name, spec in CONSTANTS.items()}
    if path:
        with open(path) as file:
            values.update({n: v for n, v in json.load(file).items() if n in values})
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", help="training steps, as scenarios/published has them")
    parser.add_argument("--rehearse", default="build/rehearse")
    parser.add_argument("--start", help="constants of an earlier fit (JSON)")
    parser.add_argument("--save", help="constants for --start")
    parser.add_argument("-o", "--output", help="the profile")
    parser.add_argument("--leave-one-out", metavar="DIR",
                        help="a profile fitted without each sweep, from the constants given")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--clip", type=float, default=0.03)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    read_rows(options.files)
    run = Runner(options.rehearse, options.files, options.threads)
    values = start_values(options.start)

    def tell(text, constants):
        print(text, file=sys.stderr, flush=True)
        if options.save:
            with open(options.save, "w") as file:
                json.dump(constants, file, indent=1)

    values, fitted = fit(run, values, options.rounds, options.clip, None, tell)
    base = run(told(values))
    by_sweep, mean = summary(base)
    for name, value in values.items():
        print(f"{name} = {value:.4g}")
    for sweep, error in by_sweep.items():
        print(f"  {sweep}: {100 * error:.1f} %")
    for host, (low, high) in bands(base).items():
        print(f"  band of {host}: {low:.3f} to {high:.3f}")
    print(f"mean error of {len(base)} steps: {100 * mean:.1f} %")
    if options.save:
        with open(options.save, "w") as file:
            json.dump(values, file, indent=1)
    source = f"{len(base)} steps of {len(by_sweep)} sweeps"
    if options.output:
        with open(options.output, "w") as file:
            file.write(profile(told(values), source, mean))
    if options.leave_one_out:
        os.makedirs(options.leave_one_out, exist_ok=True)
        slopes = jacobian(run, values, fitted)
        for sweep in by_sweep:
            other = told(refit(values, fitted, slopes, sweep, options.clip))
            path = os.path.join(options.leave_one_out, f"without-{sweep}.toml")
            with open(path, "w") as file:
                file.write(profile(other, f"{source}, without {sweep}", mean))


if __name__ == "__main__":
    main()
