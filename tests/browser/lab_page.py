# What the lab's browser tests share: a headless Chromium, the page in it, the command line beside
# it, and an axe-like look at roles, names and contrast.
"""Used by lab_test.py."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def chromium():
    """The system's own browser; playwright's is not asked for."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return skip("there is no Chromium here (apt-get install chromium)")


def playwright_api():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return skip("there is no playwright here (pip install playwright)")
    return sync_playwright


class Native:
    """The command line, whose answers the page must give."""

    def __init__(self, program):
        self.program = program

    def predict(self, scenario, sets=()):
        """Picoseconds, as the page has them."""
        command = [self.program, "predict", "--quiet", "--no-advice", str(scenario), "--json", "-"]
        for one in sets:
            command += ["--set", one]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        told = json.loads(run.stdout)
        # A run with servers has no one step: its end is compared.
        return str(told.get("step_time_ps") or round(told["makespan_s"] * 1e12))

    def error_of(self, toml):
        """What predict says of this text in a file named as the page names it."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "scenario.toml").write_text(toml, encoding="utf-8")
            run = subprocess.run([self.program, "predict", "scenario.toml"], cwd=folder,
                                 capture_output=True, text=True, check=False, timeout=300)
        return run.stderr.strip().split("\n")

    def error_of_set(self, scenario, change):
        """What predict says of a change of this file."""
        run = subprocess.run([self.program, "predict", scenario.name, "--set", change],
                             cwd=scenario.parent, capture_output=True, text=True, check=False,
                             timeout=300)
        return run.stderr.strip().split("\n")


class Opened:
    """A page, and everything it should not have said or asked for."""

    def __init__(self, browser, address, width=1280, scheme="light"):
        self.address = address
        self.page = browser.new_page(viewport={"width": width, "height": 900},
                                     color_scheme=scheme)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda said: said.type in ("error", "warning") and
                     self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def go(self, place=""):
        # Another place of the same page is no navigation: begin from nothing.
        self.page.goto("about:blank")
        self.page.goto(self.address + place)
        self.page.wait_for_selector("body[data-ready]", timeout=30_000)
        return self.page

    def close(self):
        foreign = [url for url in self.requests
                   if not url.startswith((self.address, "data:", "about:"))]
        assert not self.complaints, self.complaints
        assert not foreign, foreign
        self.page.close()


# Names, labels, order of headings, and contrast of all text that is shown, as WCAG 2 counts it.
LOOK = r"""() => {
  const problems = [];
  const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility !== "hidden";
  const name = (e) => (e.getAttribute("aria-label") || e.textContent || "").trim();
  for (const e of document.querySelectorAll("input, select, textarea"))
    if (shown(e) && !(e.labels && e.labels.length) && !e.getAttribute("aria-label"))
      problems.push("no label: " + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll("a, button"))
    if (!name(e)) problems.push("no name: " + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll("nav, section"))
    if (!e.getAttribute("aria-label")) problems.push("no name: " + e.tagName);
  for (const e of document.querySelectorAll("svg"))
    if (e.getAttribute("role") !== "img" || !e.querySelector("title"))
      problems.push("a picture without role or title");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i)))
    problems.push("twice: #" + id);
  if (document.querySelectorAll("h1").length !== 1) problems.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) problems.push("not one main");
  if (!document.documentElement.lang) problems.push("no language");
  const parts = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const light = (c) => {
    const [r, g, b] = parts(c).map((v) => {
      const s = v / 255;
      return s <= 0.04045 ? s / 12.92 : Math.pow((s + 0.055) / 1.055, 2.4);
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const c = getComputedStyle(at).backgroundColor;
      if (c !== "transparent" && parts(c)[3] !== 0) return c;
    }
    return "rgb(255, 255, 255)";
  };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !shown(e) || e.closest("svg, noscript, script, style, option")) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) problems.push(ratio.toFixed(2) + " contrast: " + e.outerHTML.slice(0, 80));
  }
  return problems;
}"""


def look(page):
    """Everything that a person without eyes, or with weak ones, would trip over."""
    return page.evaluate(LOOK)


def overflow(page):
    """By how many pixels the page is wider than its window."""
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def step_of(page):
    return page.get_attribute("#figures", "data-step-ps")
