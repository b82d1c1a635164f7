# What the tests of reports look at: one report of each kind, a large one, and hostile ones, written
# by the command line as many at a time as there are processors.
"""Used by report_test.py."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'"
NAME = "<img src=x onerror=alert(3)>&lt;b&gt;"  # of files


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def chromium():
    """The system's own browser; playwright's is not asked for."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return skip("there is no Chromium here (apt-get install chromium)")


def write_hostile(folder):
    """A scenario, a machine, two traces and a table that try to become markup, also by their
    names."""
    text = (ROOT / "scenarios" / "pipeline-bubble.toml").read_text(encoding="utf-8")
    title = HOSTILE.replace('"', '\\"')
    hostile = {"toml": folder / f"{NAME}.toml", "machine": folder / f"{NAME}-machine.toml",
               "csv": folder / f"{NAME}.csv"}
    hostile["toml"].write_text(re.sub(r"(?m)^title *=.*$", lambda _: f'title = "{title}"', text),
                               encoding="utf-8")
    hostile["machine"].write_text(f'extends = "dgx-a100"\nname = "{title}"\ntitle = "{title}"\n',
                                  encoding="utf-8")
    rows = (ROOT / "scenarios" / "published" / "kernels.csv").read_text(encoding="utf-8")
    cell = '"' + HOSTILE.replace('"', '""') + '"'
    lines = rows.splitlines()[:40]
    hostile["csv"].write_text("\n".join([lines[0]] + [f"{cell},{line.split(',', 1)[1]}"
                                                      for line in lines[1:]]) + "\n",
                              encoding="utf-8")
    return hostile


def hostile_trace(source, target):
    """The same trace with another name for some of its ops."""
    trace = json.loads(source.read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    names = sorted({event["name"] for event in events if event.get("ph") == "X"})
    for event in events:
        if event.get("ph") == "X" and event["name"] == names[0]:
            event["name"] = HOSTILE
    target.write_text(json.dumps(trace), encoding="utf-8")


def write_reports(program, folder):
    """One of each kind, small ones; one of 1,024 GPUs; and hostile ones. As many at a time as there
    are processors."""
    hostile = write_hostile(folder)
    jobs = {
        "large": ["predict", "scenarios/gpt3-175b.toml", "--no-advice"],
        "predict": ["predict", "scenarios/tp-across-nodes.toml"],
        "servers": ["predict", "scenarios/one-server-bottleneck.toml"],
        "sweep": ["sweep", "scenarios/llama3-8b-one-node.toml", "--axis", "zero_stage=0..3"],
        "scaling": ["sweep", "scenarios/resnet50-ddp.toml", "--axis", "nodes=1..4*2"],
        "bench": ["bench", "all_reduce", "--cluster", "dgx-h100", "--nodes", "2", "-b", "1K",
                  "-e", "64M", "-f", "8"],
        "accuracy": ["accuracy", "scenarios/published/kernels.csv"],
        "sixteen": ["predict", "scenarios/tp-across-nodes.toml", "--set", "nodes=2", "--set",
                    "tp=4", "--set", "pp=4", "--set", 'title="Llama-3 70B on 16 H100"',
                    "--no-advice"],
        "hostile": ["predict", str(hostile["toml"])],
        "hostile-sweep": ["sweep", str(hostile["toml"]), "--axis", "schedule=GPipe,1F1B"],
        "hostile-bench": ["bench", "all_reduce", "--cluster", str(hostile["machine"]), "-b", "1K",
                          "-e", "64K", "-f", "8"],
        "hostile-accuracy": ["accuracy", str(hostile["csv"])],
    }

    def run(words):
        done = subprocess.run([program, *words], cwd=ROOT, capture_output=True, text=True,
                              check=False, timeout=300)
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def trace(name, batch):
        run(["predict", "scenarios/best-bucket.toml", "--quiet", "--no-advice", "--set",
             f"mbs={batch}", "--trace", str(folder / f"{name}.json")])
        hostile_trace(folder / f"{name}.json", folder / f"{NAME}-{name}.json")

    def report(name):
        run([*jobs[name], "--quiet", "--report", str(folder / f"{name}.html")])

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        # Two steps of one scenario: what is compared is as large as what is told.
        traces = [pool.submit(trace, *one) for one in (("before", 8), ("after", 16))]
        reports = [pool.submit(report, name) for name in jobs]
        for done in traces:
            done.result()
        for name, start in (("compare", ""), ("hostile-compare", f"{NAME}-")):
            jobs[name] = ["compare", *(str(folder / f"{start}{side}.json")
                                       for side in ("before", "after"))]
            reports.append(pool.submit(report, name))
        for done in reports:
            done.result()
    return {name: folder / f"{name}.html" for name in jobs}


class Reports:
    """Reports in pages that stay open, and everything they should not have said or asked for."""

    def __init__(self, browser, files):
        self.browser, self.files = browser, files
        self.pages, self.complaints = {}, []

    def open(self, name):
        page = self.browser.new_page(viewport={"width": 1280, "height": 900})
        address = self.files[name].as_uri()

        def requested(request):
            if not request.url.startswith((address, "data:", "blob:")):
                self.complaints.append((name, request.url))

        page.on("console", lambda said: said.type in ("error", "warning") and
                self.complaints.append((name, said.text)))
        page.on("pageerror", lambda error: self.complaints.append((name, str(error))))
        page.on("dialog", lambda dialog: self.complaints.append((name, dialog.message)))
        page.on("request", requested)
        page.goto(address)
        return page

    @contextmanager
    def shown(self, name, width=1280, scheme="light", is_new=False):
        """Its page as it opens, or the one that is open; those who zoom want a new one."""
        page = self.open(name) if is_new else self.pages.get(name)
        if page is None:
            page = self.pages[name] = self.open(name)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, media="screen")
        yield page
        if is_new:
            page.close()
        assert not self.complaints, self.complaints
