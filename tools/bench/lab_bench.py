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
from lab_test import LARGE_PIPELINE, LESSONS, controls_of, open_lesson, show

# From the event until a frame with the new picture was painted: a message that is sent in an
# animation frame arrives after its painting. Then until text and curve have followed.
REDRAW = """async ([id, places, times, settles]) => {
  const field = document.getElementById(id);
  const frame = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  }));
  const text = document.querySelector("#reveal"), curve = document.querySelector("#curve");
  const is_settled = () => text.hasAttribute("data-ms") &&
    (curve.childElementCount === 0 || curve.hasAttribute("data-ms"));
  const took = [];
  for (let i = 0; i < times; ++i) {
    await new Promise((done) => setTimeout(done, settles ? 20 : 150));
    await frame();
    text.removeAttribute("data-ms");
    const begun = performance.now();
    field.value = String(places[i % places.length]);
    field.dispatchEvent(new Event("input", { bubbles: true }));
    document.querySelector("#picture").getBoundingClientRect();
    const drawn = performance.now();
    await frame();
    const painted = performance.now();
    while (settles && !is_settled()) await new Promise((done) => setTimeout(done, 5));
    took.push([drawn - begun, painted - begun, performance.now() - begun]);
  }
  return took;
}"""


def redraws(page, field, places, times=6, settles=True):
    """Milliseconds of each change: until simulated, drawn and laid out; until painted; until text
    and curve are there as well."""
    return page.evaluate(REDRAW, [field, places, times, settles])


def words(name, took, limit):
    drawn, painted, settled = zip(*took)
    worst = max(painted)
    print(f"{name:<46} {statistics.median(drawn):7.1f} {statistics.median(painted):8.1f} "
          f"{worst:7.1f} {max(settled):8.0f}   "
          f"{'ok' if worst < limit else 'TOO SLOW'} (under {limit} ms)", flush=True)
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
        print(f"{'ms from the change until …':<46} {'drawn':>7} {'painted':>8} {'worst':>7} "
              f"{'settled':>8}")
        opened = opened_of()
        page = opened.go(LARGE_PIPELINE)
        page.wait_for_selector("#picture svg")
        # The browser's compiler is at work while the page is new; nobody moves a slider then.
        words("16 devices × 64 micro-batches, just opened",
              redraws(page, "control-schedule", [1, 0], 4), 50)
        page.wait_for_selector("section[data-warm]", timeout=60_000)
        good &= words("16 devices × 64 micro-batches",
                      redraws(page, "control-schedule", [1, 0], 24), 50)
        for lesson in LESSONS:
            open_lesson(page, lesson)
            show(page)
            page.wait_for_selector("section[data-warm]", timeout=60_000)
            for field, key, count, now in controls_of(page):
                places = [place for place in range(count) if place != now] + [now]
                good &= words(f"{lesson.stem} {key}",
                              redraws(page, field, places, count), 300)
        browser.close()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
