# What happens on a cluster when something goes wrong in the middle of a run: a rank killed or
# stopped, a host cut off, Ctrl-C. Everything ends within 10 s with exit code 3 and one line that
# names the culprit; no file is left half-written and no process behind.
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
HOSTS = [0, 1, 2, 3]


class Run:
    """A paced run that would take minutes, once its ranks are at work."""

    def __init__(self, cluster, rehearse, folder):
        self.cluster, self.folder = cluster, folder
        command = [rehearse, "run", os.path.join(folder, "paced.toml"), "--backend", "host",
                   "--compute", "paced", "--steps", "100000", "--quiet", "--json",
                   os.path.join(folder, "out.json"), "--processes", str(len(HOSTS)), "--mpirun",
                   " ".join(cluster.words_for_mpirun(HOSTS))]
        self.job = cluster.start(0, command, start_new_session=True)
        for _ in range(300):
            time.sleep(0.1)
            if all(self.rank(host) for host in HOSTS):
                break
        time.sleep(5)  # in the middle of it: on a busy machine MPI takes seconds to begin
        self.begin = time.time()

    def rank(self, host):
        """Its process; on the first host the one that mpirun started, not the one that waits."""
        return [pid for pid in self.cluster.processes(host, "rehearse") if pid != self.job.pid]

    def left(self):
        return [pid for host in HOSTS for name in ("rehearse", "orted", "mpirun")
                for pid in self.cluster.processes(host, name)]

    def end(self, what, words):
        try:
            out, err = self.job.communicate(timeout=3 * LIMIT)
        except subprocess.TimeoutExpired:
            for pid in {self.job.pid, *self.left()}:
                os.kill(pid, signal.SIGKILL)
            out, err = self.job.communicate()
            err += "(killed by the test)"
        taken = time.time() - self.begin
        ranks = [self.rank(host) for host in HOSTS]
        # Open MPI's daemon on a host that is cut off hears of nothing; TCP tells it in the end.
        while self.left() and time.time() - self.begin <= 3 * LIMIT:
            time.sleep(0.1)
        left = self.left()
        errors = [line for line in err.splitlines() if "error: " in line]
        files = [name for name in os.listdir(self.folder) if name.startswith("out.json")]
        good = (taken <= LIMIT and self.job.returncode == 3 and not any(ranks) and not left and
                not files and err.count("\n") == 1 and
                len(errors) == 1 and words in errors[0])
        print(f"{'ok' if good else 'FAILED'} {what}: {taken:.1f} s, exit code "
              f"{self.job.returncode}: {errors}", flush=True)
        if not good:
            print(f"left behind: {left}, half-written: {files}\n{out[-1500:]}{err[-1500:]}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return good


def write_scenario(folder):
    with open(os.path.join(HERE, "cluster.toml"), encoding="utf-8") as file:
        text = file.read().replace("nodes = 8", f"nodes = {len(HOSTS)}")
    with open(os.path.join(folder, "cluster.toml"), "w", encoding="utf-8") as out:
        out.write(text)
    shutil.copy(os.path.join(HERE, "paced.toml"), folder)


def main():
    rehearse = os.path.abspath(sys.argv[1])
    good = True
    with tempfile.TemporaryDirectory(prefix="rh") as folder:
        cluster = namespaces.make_or_skip(folder)
        write_scenario(folder)

        def start():
            return Run(cluster, rehearse, folder)

        run = start()
        os.kill(run.rank(1)[0], signal.SIGKILL)
        good = run.end("a rank killed", "rank 1 (") and good
        run = start()
        os.kill(run.rank(2)[0], signal.SIGSTOP)
        good = run.end("a rank stopped", f"rank 2 ({cluster.host(2)})") and good
        run = start()
        cluster.cut_off(3)
        good = run.end("a host cut off", f"rank 3 ({cluster.host(3)})") and good
        cluster.connect(3)
        run = start()
        os.kill(run.job.pid, signal.SIGINT)
        good = run.end("Ctrl-C", "stopped before the end") and good
        cluster.tear_down()
    sys.exit(0 if good else 1)


main()
