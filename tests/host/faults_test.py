# What goes wrong in the middle of a real run, with ranks as threads and as processes: a rank killed
# or stopped, Ctrl-C, a full disk. All end within 10 s with one line and exit code 3; no file is
# left half-written, no process behind; a checkpoint goes on with the same bits.
#
#   faults_test.py REHEARSE
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = 10
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
SCENARIO = """schema = 1
[model]
model_type = "mlp"
layer_sizes = [32, 32, 10]
[cluster]
name = "machine.toml"
[training]
micro_batch_size = 4
dtype = "fp32"
optimizer = "adam"
"""
HERE = os.path.dirname(os.path.abspath(__file__))
MACHINE = os.path.join(HERE, "..", "support", "host_machine.toml")
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print(f"FAILED {what}", flush=True)


def tree_of(pid):
    """All processes below one that run rehearse, by their parents."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    text = file.read()
                parents[int(entry)] = (int(text.rsplit(")", 1)[1].split()[1]),
                                       text.split("(", 1)[1].rsplit(")", 1)[0])
            except (OSError, IndexError, ValueError):
                pass
    below, found = {pid}, []
    for _ in range(6):
        for child, (parent, name) in parents.items():
            if parent in below and child not in below:
                below.add(child)
                if name == "rehearse":
                    found.append(child)
    return sorted(found)


def rank_of(pid):
    """As mpirun told it."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
            found = [word for word in file.read().split("\0")
                     if word.startswith("OMPI_COMM_WORLD_RANK=")]
    except OSError:
        found = []
    return int(found[0].split("=")[1]) if found else 0


def seconds_used(pid):
    """Of processors, by a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return 1
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Job:
    """A run that would take minutes, once its ranks are at work, or as soon as they are there."""

    def __init__(self, rehearse, folder, name, ranks, launcher=None, more=(), at_work=True):
        self.folder, self.name = folder, name
        words = (launcher or []) + [rehearse, "run", "scenario.toml", "--backend", "host",
                                    "--steps", "100000", "--quiet", "--json", f"{name}.json"]
        self.process = subprocess.Popen(words + list(more), text=True, cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=ENVIRONMENT, start_new_session=True)
        self.ranks = []
        for _ in range(3000):
            time.sleep(0.01)
            self.ranks = tree_of(self.process.pid)
            if len(self.ranks) >= ranks:
                break
        for _ in range(600 if at_work else 0):  # beyond MPI's own beginning
            time.sleep(0.1)
            if all(seconds_used(pid) >= 1 for pid in self.ranks or [self.process.pid]):
                break
        self.ranks.sort(key=rank_of)
        self.begin = time.time()

    def end(self, words, code=3):
        try:
            out, err = self.process.communicate(timeout=3 * LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            for rank in self.ranks:
                if os.path.exists(f"/proc/{rank}"):
                    os.kill(rank, signal.SIGKILL)
            out, err = self.process.communicate()
            err += "(killed by the test)"
        taken = time.time() - self.begin
        while any(os.path.exists(f"/proc/{pid}") for pid in self.ranks):
            if time.time() - self.begin > LIMIT:
                break
            time.sleep(0.1)
        left = [pid for pid in self.ranks if os.path.exists(f"/proc/{pid}")]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        errors = [line for line in err.splitlines() if "error: " in line]
        if not errors and code > 128:  # mpirun was quicker than the ranks, and told it itself
            errors = [line for line in err.splitlines() if "exited on signal" in line]
        print(f"{self.name}: {taken:.1f} s, exit code {self.process.returncode}: {errors}",
              flush=True)
        check(taken <= LIMIT, f"{self.name}: took {taken:.1f} s")
        check(self.process.returncode == code, f"{self.name}: exit code "
              f"{self.process.returncode}\n{out[-800:]}{err[-1500:]}")
        check(len(errors) == 1 and any(word in errors[0] for word in words),
              f"{self.name}: {errors}\n{err[-1500:]}")
        check(not left, f"{self.name}: left behind {left}")
        files = [name for name in os.listdir(self.folder) if name.startswith(f"{self.name}.json")]
        check(not files, f"{self.name}: half-written {files}")


def processes(rehearse, folder):
    ours = ("--processes", "3")
    job = Job(rehearse, folder, "killed", 3, more=ours)
    os.kill(job.ranks[1], signal.SIGKILL)
    job.end(["rank 1 ("])
    job = Job(rehearse, folder, "stopped", 3, more=ours)
    os.kill(job.ranks[2], signal.SIGSTOP)
    job.end(["rank 2 ("])
    job = Job(rehearse, folder, "stopped early", 3, more=ours, at_work=False)
    os.kill(job.ranks[1], signal.SIGSTOP)
    job.end(["rank 1 ("])
    job = Job(rehearse, folder, "interrupted", 3,
              more=(*ours, "--checkpoint", "interrupted.checkpoint"))
    os.kill(job.process.pid, signal.SIGINT)
    job.end(["go on with --resume interrupted.checkpoint"])
    resumed = subprocess.run([rehearse, "run", "scenario.toml", "--backend", "host", "--steps", "1",
                              "--resume", "interrupted.checkpoint"], cwd=folder, env=ENVIRONMENT,
                             text=True, capture_output=True, check=False)
    check(resumed.returncode == 0, f"resumed: {resumed.stderr}")
    # mpirun started by hand has exit codes of its own for a rank that was killed; the line is ours.
    job = Job(rehearse, folder, "mpirun", 3, ["mpirun", "--oversubscribe", "-n", "3"])
    os.kill(job.ranks[0], signal.SIGKILL)
    job.end(["rank 0 "], code=128 + signal.SIGKILL)


def mpirun_dies(rehearse, folder):
    """mpirun ends by a signal when asked to end twice: the code is still the ranks' own. And what
    Open MPI complains of meanwhile, in lines that follow one with its place, is nobody's matter."""
    place = os.path.join(folder, "dying")
    os.mkdir(place)
    with open(os.path.join(place, "mpirun"), "w", encoding="utf-8") as file:
        file.write("#!/bin/bash\nprintf '[vm][[1,1],2][btl_tcp_frag.c:130] writev error (0x1, 4)"
                   "\\n\\tBad address(1)\\n\\n' >&2\n"
                   f'{shutil.which("mpirun")} "$@"\nkill -SEGV $$\n')
    os.chmod(file.name, 0o755)
    done = subprocess.run([rehearse, "run", "scenario.toml", "--backend", "host", "--processes",
                           "3", "--resume", "missing"], cwd=folder, text=True, capture_output=True,
                          env=dict(ENVIRONMENT, PATH=f"{place}:{ENVIRONMENT['PATH']}"),
                          check=False)
    check(done.returncode == 2 and done.stderr.count("\n") == 1 and "missing" in done.stderr,
          f"mpirun dies: {done.returncode} {done.stderr}")
    print(f"mpirun dies: {done.stderr.strip()}", flush=True)


def threads(rehearse, folder):
    job = Job(rehearse, folder, "threads", 0)
    os.kill(job.process.pid, signal.SIGINT)
    job.end(["stopped before the end"])
    job = Job(rehearse, folder, "kept", 0, more=("--checkpoint", "kept.checkpoint"))
    os.kill(job.process.pid, signal.SIGTERM)
    job.end(["go on with --resume kept.checkpoint"])


def full_disk(rehearse, folder):
    """Files may not grow beyond a few bytes: what was there before stays as it was."""
    path = os.path.join(folder, "full.checkpoint")
    for words in (["--checkpoint", path], ["--json", path], ["--trace", path]):
        with open(path, "w", encoding="utf-8") as file:
            file.write("before")
        line = 'ulimit -f 1; exec "$@"'
        done = subprocess.run(["bash", "-c", line, "bash", rehearse, "run", "scenario.toml",
                               "--backend", "host", "--steps", "30", "--quiet", *words], text=True,
                              cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
        with open(path, encoding="utf-8") as file:
            check(file.read() == "before", f"{words[0]}: the file is not what it was")
        left = [name for name in os.listdir(folder) if name.startswith("full.checkpoint.")]
        check(done.returncode == 3 and done.stderr.count("\n") == 1 and not left,
              f"full disk, {words[0]}: {done.returncode} {left} {done.stderr}")
        print(f"full disk, {words[0]}: {done.stderr.strip()}", flush=True)


# A disk of two pages, seen by nobody else and gone with its processes.
TINY_DISK = 'mount -t tmpfs -o size=8k tiny "$1" && cd "$1" && shift && exec "$@"'


def can_mount(folder):
    return subprocess.run(["unshare", "-m", "bash", "-c", TINY_DISK, "bash", folder, "true"],
                          capture_output=True, check=False).returncode == 0


def tiny_disk(rehearse, folder):
    """A disk that is really full, with threads and with processes: nothing half-written on it."""
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    if not shutil.which("unshare") or not can_mount(disk):
        print("a tiny disk may not be mounted here: a limit of file sizes stands for it")
        return
    # What is on the disk afterwards comes as the last line, and the exit code as it was.
    listing = 'echo before >out; "$@"; code=$?; echo; echo "$(cat out) $(ls)"; exit $code'
    ways = [[], ["--processes", "3"]] if shutil.which("mpirun") else [[]]
    for words in (["--checkpoint", "out"], ["--json", "out"], ["--trace", "out"]):
        for way in ways:
            done = subprocess.run(
                ["unshare", "-m", "bash", "-c", TINY_DISK, "bash", disk, "bash", "-c", listing,
                 "bash", rehearse, "run", os.path.join(folder, "scenario.toml"), "--backend",
                 "host", "--steps", "200", "--quiet", *way, *words],
                text=True, env=ENVIRONMENT, capture_output=True, check=False)
            told = f"full disk, {words[0]} {' '.join(way)}"
            check(done.stdout.splitlines()[-1:] == ["before out"],
                  f"{told}: left {done.stdout.splitlines()[-1:]}")
            check(done.returncode == 3 and done.stderr.count("\n") == 1 and
                  "No space left on device" in done.stderr,
                  f"{told}: {done.returncode} {done.stderr}")
            print(f"{told}: {done.stderr.strip()}", flush=True)


def main():
    rehearse = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="rh") as folder:
        with open(MACHINE, encoding="utf-8") as file:
            machine = file.read().replace("gpus = 4", "gpus = 3")
        for name, text in (("scenario.toml", SCENARIO), ("machine.toml", machine)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        threads(rehearse, folder)
        full_disk(rehearse, folder)
        tiny_disk(rehearse, folder)
        if shutil.which("mpirun"):
            processes(rehearse, folder)
            mpirun_dies(rehearse, folder)
        else:
            print("there is no mpirun: ranks as processes are left out")
    sys.exit(1 if failures else 0)


main()
