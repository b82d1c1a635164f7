# What happens when something goes wrong in the middle of a run: a rank killed or stopped, Ctrl-C, a
# full disk. The others end within 10 s, one line names the culprit, and nothing stays behind.
#
#   faults_test.py REHEARSE
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import namespaces

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 10
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def children_of(pid, name):
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)
            if fields[0].split("(", 1)[1] == name and int(fields[1].split()[1]) == pid:
                found.append(int(entry))
        except (OSError, IndexError, ValueError):
            pass
    return sorted(found)


def start(rehearse, folder, ranks=3):
    """A paced run that would take minutes; returns when all ranks are there."""
    words = ["mpirun", "--oversubscribe", "-n", str(ranks), rehearse, "run",
             os.path.join(folder, "paced.toml"), "--backend", "host", "--compute", "paced",
             "--steps", "100000", "--json", os.path.join(folder, "out.json"), "--quiet"]
    job = subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env=ENVIRONMENT, start_new_session=True)
    for _ in range(200):
        time.sleep(0.1)
        if len(children_of(job.pid, "rehearse")) == ranks:
            break
    time.sleep(3)  # in the middle of it
    return job, children_of(job.pid, "rehearse")


def expect_end(job, ranks, words, what):
    begin = time.time()
    try:
        out, err = job.communicate(timeout=LIMIT + 5)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        print(f"FAILED {what}: still running after {LIMIT + 5} s")
        return False
    taken = time.time() - begin
    left = ranks
    while left and time.time() - begin <= LIMIT:
        left = [pid for pid in left if os.path.exists(f"/proc/{pid}")]
        time.sleep(0.1)
    told = [line for line in (out + err).splitlines() if any(word in line for word in words)]
    good = taken <= LIMIT and job.returncode != 0 and not left and told
    print(f"{'ok' if good else 'FAILED'} {what}: {taken:.1f} s, exit code {job.returncode}, "
          f"left behind {left}: {told[:1]}")
    if not good:
        print(out[-1500:] + err[-1500:])
    return good


def write_scenario(folder):
    with open(os.path.join(HERE, "cluster.toml"), encoding="utf-8") as file:
        text = file.read().replace("nodes = 8", "nodes = 3")
    with open(os.path.join(folder, "cluster.toml"), "w", encoding="utf-8") as out:
        out.write(text)
    shutil.copy(os.path.join(HERE, "paced.toml"), folder)


def main():
    rehearse = os.path.abspath(sys.argv[1])
    if shutil.which("mpirun") is None:
        namespaces.skip("there is no mpirun")
    good = True
    with tempfile.TemporaryDirectory(prefix="rh") as folder:
        write_scenario(folder)
        job, ranks = start(rehearse, folder)
        os.kill(ranks[1], signal.SIGKILL)
        good = expect_end(job, ranks, ["rank 1"], "a rank killed") and good
        job, ranks = start(rehearse, folder)
        os.kill(ranks[2], signal.SIGSTOP)
        stopped = expect_end(job, ranks, ["rank 2 ("], "a rank stopped")
        good = stopped and job.returncode == 3 and good
        job, ranks = start(rehearse, folder)
        os.kill(job.pid, signal.SIGINT)
        good = expect_end(job, ranks, ["stopped before the end", "killing job"], "Ctrl-C") and good
        left = [name for name in os.listdir(folder) if name.startswith("out.json")]
        if left:
            print(f"FAILED half-written: {left}")
            good = False
    sys.exit(0 if good else 1)


main()
