# How quickly the lab follows the hand, in a real headless Chromium: from a control's change until
# the new picture is painted, and from opening the file until it can be used.
"""Usage: lab_bench.py [PAGE.html]   (build/lab/index.html; exit 77: nothing to measure with)"""

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "browser"))
from lab_page import Opened, chromium, playwright_api, skip
from lab_test import LARGE_PIPELINE, LESSONS, controls_of, show

# From the event until a frame with the new picture was painted: a message that is sent in an
# animation frame arrives after its painting.
REDRAW = """async ([id, places, times]) => {
  const field = document.getElementById(id);
  const frame = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  }));
  const took = [];
  for (let i = 0; i < times; ++i) {
    await new Promise((done) => setTimeout(done, 150));  // text and curve are done by then
    await frame();
    const begun = performance.now();
    field.value = String(places[i % places.length]);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector("#picture").getBoundingClientRect();
    const drawn = performance.now();
    await frame();
    took.push([drawn - begun, performance.now() - begun]);
  }
  return took;
}"""


def redraws(page, field, places, times=6):
    """Milliseconds of each change: until simulated, drawn and laid out; until painted."""
    return page.evaluate(REDRAW, [field, places, times])


def words(name, took, limit):
    drawn, painted = zip(*took)
    worst = max(painted)
    print(f"{name:<46} {statistics.median(drawn):7.1f} {statistics.median(painted):8.1f} "
          f"{worst:7.1f}   {'ok' if worst < limit else 'TOO SLOW'} (under {limit} ms)", flush=True)
    return worst < limit


def opening(opened_of):
    """Seconds until the page says that it is ready, of three new pages."""
    times = []
    for _ in range(3):
        opened = opened_of()
        begun = time.monotonic()
        opened.go()
        times.append(time.monotonic() - begun)
        opened.page.close()
    print(f"usable after {max(times):.2f} s at most, {min(times):.2f} s at best (under 2 s)")
    return max(times) < 2


def main():
    file = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/lab/index.html").resolve()
    if not file.exists():
        skip(f"there is no {file.name} (tools/lab/build makes it)")
    api, executable = playwright_api(), chromium()
    with api() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])

        def opened_of():
            return Opened(browser, file.as_uri())

        print(f"{file.stat().st_size / 1e6:.2f} MB (under 3 MB)")
        good = opening(opened_of)
        print(f"{'ms from the change until …':<46} {'drawn':>7} {'painted':>8} {'worst':>7}")
        opened = opened_of()
        page = opened.go(LARGE_PIPELINE)
        page.wait_for_selector("#picture svg")
        good &= words("16 devices × 64 micro-batches",
                      redraws(page, "control-schedule", [1, 0], 12), 50)
        for lesson in LESSONS:
            page = opened.go(f"#lesson={lesson.stem}")
            show(page)
            for field, key, count, now in controls_of(page):
                good &= words(f"{lesson.stem} {key}",
                              redraws(page, field, [count - 1, now], 2), 300)
        browser.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
