# A small cluster of network namespaces: hosts, racks and a spine joined by veth pairs, every link
# shaped by tc. Nothing of it can be reached from outside, and nothing stays behind.
#
#   h0 h1 h2 h3   h4 h5 h6 h7      a link: 200 Mbit/s each way
#    └──┴─┬┴──┘    └──┴─┬┴──┘
#       rack0 ──spine── rack1      an uplink: 200 Mbit/s for 4 hosts, 4:1
import atexit
import os
import shutil
import signal
import subprocess
import sys

SKIPPED = 77
EAGER = str(8 << 20)  # bytes of a message that goes without being asked for


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*words, check=True, quiet=True):
    return subprocess.run(words, check=check, text=True,
                          stdout=subprocess.DEVNULL if quiet else None,
                          stderr=subprocess.DEVNULL if quiet and not check else None)


def process_name(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


class Cluster:
    """Hosts h0, h1, …, in racks of `hosts_a_rack`; torn down whatever happens."""

    def __init__(self, folder, racks=2, hosts_a_rack=4, link_mbit=200, uplink_mbit=200):
        self.prefix = f"rh{os.getpid()}"
        self.folder = folder
        self.racks, self.hosts_a_rack = racks, hosts_a_rack
        self.link_mbit, self.uplink_mbit = link_mbit, uplink_mbit
        self.made = []
        # Ahead of whatever else this machine does: a rank that naps for 20 us must not come back
        # after a compiler's slice of milliseconds. They sleep most of the time.
        is_allowed = subprocess.run(("chrt", "--rr", "1", "true"), capture_output=True,
                                    check=False).returncode == 0
        self.first = ["chrt", "--rr", "1"] if is_allowed else []
        atexit.register(self.tear_down)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, lambda number, frame: sys.exit(128 + number))
        self.build()

    def host(self, number):
        return f"{self.prefix}-h{number}"

    @staticmethod
    def address(number):
        return f"10.77.0.{number + 1}"

    def namespace(self, name):
        run("ip", "netns", "add", name)
        self.made.append(name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        # A connection that was idle for a while keeps its window, as within a training job.
        run("ip", "netns", "exec", name, "sysctl", "-q", "net.ipv4.tcp_slow_start_after_idle=0",
            check=False)
        # Daemons of a host that is cut off give up after seconds.
        run("ip", "netns", "exec", name, "sysctl", "-q", "net.ipv4.tcp_retries2=4", check=False)

    def switch(self, name):
        self.namespace(name)
        run("ip", "-n", name, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", name, "link", "set", "br0", "up")

    def shape(self, name, device, mbit):
        # A small bucket: else the first 64 KiB of every message would pass at full speed. With one
        # of 3 KB, and frames as short, the rate was not kept: 22 MB/s instead of 25.
        run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{mbit}mbit",
            "burst", "10kb", "latency", "200ms")

    def cable(self, one, one_device, other, other_device, mbit):
        run("ip", "-n", one, "link", "add", one_device, "type", "veth", "peer", "name",
            other_device, "netns", other)
        for name, device in ((one, one_device), (other, other_device)):
            # Large frames: half as many cores as hosts have six times fewer packets to carry.
            run("ip", "-n", name, "link", "set", device, "mtu", "9000", "up")
            # No offloading: shaped are packets as they would be on a wire.
            run("ip", "-n", name, "link", "set", device, "gso_max_segs", "1", check=False)
            self.shape(name, device, mbit)

    def build(self):
        spine = f"{self.prefix}-spine"
        self.switch(spine)
        for rack in range(self.racks):
            leaf = f"{self.prefix}-rack{rack}"
            self.switch(leaf)
            self.cable(leaf, "trunk", spine, f"down{rack}", self.uplink_mbit)
            run("ip", "-n", leaf, "link", "set", "trunk", "master", "br0")
            run("ip", "-n", spine, "link", "set", f"down{rack}", "master", "br0")
            for i in range(self.hosts_a_rack):
                number = rack * self.hosts_a_rack + i
                host = self.host(number)
                self.namespace(host)
                self.cable(host, "eth0", leaf, f"h{i}", self.link_mbit)
                run("ip", "-n", leaf, "link", "set", f"h{i}", "master", "br0")
                run("ip", "-n", host, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        self.write_agent()

    def write_agent(self):
        # Open MPI calls it with an address and a command; each host has a name of its own, or the
        # ranks would believe to share memory.
        self.agent = os.path.join(self.folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n# Enters the namespace of a host and starts a daemon there.\n"
                       "address=$1; shift\nnumber=$((${address##*.} - 1))\n"
                       f"host={self.prefix}-h$number\n"
                       "exec ip netns exec \"$host\" unshare --uts "
                       "sh -c 'hostname \"$0\"; exec sh -c \"$1\"' \"$host\" \"$*\"\n")
        os.chmod(self.agent, 0o755)

    def words_for_mpirun(self, hosts):
        """What mpirun needs to start one rank on each of the hosts."""
        return ["--host", ",".join(self.address(h) for h in hosts), "--oversubscribe", "--bind-to",
                "none", "--mca", "plm_rsh_agent", self.agent, "--mca", "btl", "tcp,self",
                "--mca", "btl_tcp_if_include", "10.77.0.0/24",
                "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                # Small socket buffers: what waits, waits in the sender, and no queue of a switch
                # grows long enough to hold up others or to drop.
                "--mca", "btl_tcp_sndbuf", "131072", "--mca", "btl_tcp_rcvbuf", "131072",
                # No rendezvous: its answer would stand behind all that goes the same way.
                "--mca", "btl_tcp_eager_limit", EAGER, "--mca", "btl_tcp_rndv_eager_limit", EAGER,
                "--mca", "btl_tcp_max_send_size", EAGER,
                "--mca", "mpi_yield_when_idle", "1"]

    def start(self, host, command, **options):
        """A command on one of the hosts, ahead of others of this machine."""
        words = [*self.first, "ip", "netns", "exec", self.host(host), "unshare", "--uts", "sh",
                 "-c", "hostname \"$0\"; exec \"$@\"", self.host(host), *command]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=self.folder)
        return subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=environment, **options)

    def mpirun(self, hosts, command, timeout=300):
        """Runs a command with one rank on each of the hosts; mpirun itself on the first."""
        job = self.start(hosts[0], ["mpirun", "-n", str(len(hosts)), *self.words_for_mpirun(hosts),
                                    *command])
        try:
            out, err = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            job.kill()
            raise
        return subprocess.CompletedProcess(job.args, job.returncode, out, err)

    def processes(self, host, name):
        """The numbers of a host's processes of that name."""
        listed = subprocess.run(("ip", "netns", "pids", self.host(host)), text=True,
                                capture_output=True, check=False).stdout.split()
        return [int(pid) for pid in listed if process_name(pid) == name]

    def cut_off(self, host):
        run("ip", "-n", self.host(host), "link", "set", "eth0", "down")

    def connect(self, host):
        run("ip", "-n", self.host(host), "link", "set", "eth0", "up")

    def tear_down(self):
        for name in reversed(self.made):
            pids = subprocess.run(("ip", "netns", "pids", name), text=True, capture_output=True,
                                  check=False).stdout.split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except (ProcessLookupError, ValueError):
                    pass
            run("ip", "netns", "delete", name, check=False)
        self.made = []


def make_or_skip(folder, **shape):
    """A cluster, or the end with 77 where one may not be made."""
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for tool in ("ip", "tc", "mpirun", "unshare"):
        if shutil.which(tool) is None:
            skip(f"there is no {tool}")
    probe = f"rh{os.getpid()}-probe"
    made = subprocess.run(("ip", "netns", "add", probe), capture_output=True, check=False)
    run("ip", "netns", "delete", probe, check=False)
    if made.returncode != 0:
        skip("network namespaces may not be made here")
    try:
        return Cluster(folder, **shape)
    except subprocess.CalledProcessError as error:
        skip(f"this system cannot shape links: {' '.join(error.cmd)}")
