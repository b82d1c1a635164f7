# The lab in a real browser: every lesson opens, its controls change picture and number, the number
# is that of `rehearse predict`, by keyboard too, on a phone too, and quickly enough.
"""Usage: lab_test.py PAGE.html REHEARSE [TEST...]   (exit 77: nothing to test with)"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab_page import ROOT, Native, Opened, chromium, look, overflow, playwright_api, skip, step_of

LESSONS = sorted((ROOT / "scenarios" / "lessons").glob("[0-9]*.toml"))


def show(page):
    """The answer of the lesson that is open, without a guess."""
    page.get_by_role("button", name="Show me").click()
    page.wait_for_selector("#figures[data-step-ps]")
    page.wait_for_selector("#picture svg")


def test_opens_from_disk_quickly(lab, native, size):
    """Usable in two seconds, in three megabytes, without a request to anybody."""
    assert size < 3_000_000, size
    best = 1e9
    for _ in range(3):  # of a busy machine the best run is what the page needs
        opened = lab()
        begun = time.monotonic()
        page = opened.go()
        best = min(best, time.monotonic() - begun)
        assert page.locator("#list a").count() == len(LESSONS)
        opened.close()
    assert best < 2, f"usable after {best:.2f} s"
    print(f"  usable after {best:.2f} s, {size / 1e6:.2f} MB")


def controls_of(page):
    """(id, key, values, place) of each control of the open lesson."""
    return page.evaluate("""() => [...document.querySelectorAll(".control")].map((c) => {
      const f = c.querySelector("input, select");
      const key = c.querySelector("label").firstChild.textContent;
      return [f.id, key, f.tagName === "SELECT" ? f.options.length : Number(f.max) + 1,
              Number(f.value)];
    })""")


def move(page, field, place):
    """Moves a control as a hand would, and tells the value it then has."""
    return page.evaluate("""([id, place]) => {
      const f = document.getElementById(id);
      f.value = String(place);
      f.dispatchEvent(new Event("input", { bubbles: true }));
      return f.tagName === "SELECT" ? f.options[place].textContent
                                    : f.getAttribute("aria-valuetext");
    }""", [field, place])


def test_every_lesson_shows_what_predict_prints(lab, native, size):
    """At its own values, and with every control moved: to the picosecond."""
    opened = lab()
    page = opened.go()
    slowest = ("", 0.0)
    for file in LESSONS:
        page.click(f'#list a[href*="{file.stem}"]')
        page.wait_for_function("n => document.querySelector('main .topic').textContent"
                               ".startsWith(n)", arg=file.stem[:2])
        show(page)
        assert page.locator("#reveal p").count() > 0, file.stem
        first = native.predict(file)
        assert step_of(page) == first, file.stem
        seen = {step_of(page)}
        drawn = {page.inner_html("#picture")}
        for field, key, count, now in controls_of(page):
            place = 0 if now != 0 else count - 1
            value = move(page, field, place)
            assert page.inner_text("#errors") == "", (file.stem, key, value)
            told = native.predict(file, [f"{key}={value}"])
            assert step_of(page) == told, (file.stem, key, value)
            took = float(page.get_attribute("#picture", "data-ms"))
            slowest = max(slowest, (f"{file.stem} {key}={value}", took), key=lambda one: one[1])
            seen.add(step_of(page))
            drawn.add(page.inner_html("#picture"))
            move(page, field, now)
        assert len(seen) > 1, f"{file.stem}: no control changes the number"
        assert len(drawn) > 1, f"{file.stem}: no control changes the picture"
    opened.close()
    print(f"  {len(LESSONS)} lessons; slowest redraw {slowest[1]:.0f} ms ({slowest[0]})")


def redraw_time(page, field, places):
    """The best of several changes, from the event until the picture is painted."""
    return page.evaluate("""async ([id, places]) => {
      const f = document.getElementById(id);
      let best = 1e9;
      for (let i = 0; i < 12; ++i) {
        await new Promise((done) => setTimeout(done, 30));
        const begun = performance.now();
        f.value = String(places[i % places.length]);
        f.dispatchEvent(new Event("input", { bubbles: true }));
        document.querySelector("#picture").getBoundingClientRect();
        await new Promise((done) => requestAnimationFrame(done));
        best = Math.min(best, performance.now() - begun);
      }
      return best;
    }""", [field, places])


def test_follows_the_hand(lab, native, size):
    """50 ms for 16 devices with 64 micro-batches, 300 ms for the slowest lesson."""
    opened = lab()
    page = opened.go("#lesson=22_pipeline_bubble&set=cluster.node.gpus%3D16&set=pp%3D16"
                     "&set=gbs%3D32768")
    page.wait_for_selector("#picture svg")
    assert page.inner_text("#errors") == ""
    assert page.locator("#picture svg rect").count() > 16 * 64, "the pipeline is not all there"
    wide = redraw_time(page, "control-schedule", [0, 1])
    assert wide < 50, f"{wide:.0f} ms"
    slowest = 0.0
    for file in LESSONS:
        page.goto("about:blank")
        page = opened.go(f"#lesson={file.stem}")
        show(page)
        field, _, count, now = controls_of(page)[0]
        slowest = max(slowest, redraw_time(page, field, [count - 1, now]))
        assert slowest < 300, f"{file.stem}: {slowest:.0f} ms"
    opened.close()
    print(f"  16 devices × 64 micro-batches: {wide:.1f} ms; slowest lesson {slowest:.0f} ms")


def test_judges_guesses(lab, native, size):
    """A mistake is told beside the field in the command line's words."""
    opened = lab()
    page = opened.go("#lesson=17_ring")
    page.fill("#guess", "much")
    page.get_by_role("button", name="Check").click()
    assert page.inner_text("#wrong") == "error: 'much' is no guess: type a number of ms"
    assert page.locator("#grade").count() == 0
    page.fill("#guess", "5.1")
    page.get_by_role("button", name="Check").click()
    assert page.inner_text("#grade").startswith("Right. You said 5.1 ms; the run says 5.0")
    assert page.locator("#list a.done").count() == 1
    opened.close()


def test_works_by_keyboard_alone(lab, native, size):
    """To a lesson, through its guess, to a slider, and the number changes."""
    opened = lab()
    page = opened.go()
    focused = "document.activeElement.id || document.activeElement.textContent"
    for _ in range(60):
        page.keyboard.press("Tab")
        if "How large is the bubble?" in page.evaluate(focused):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("text=How large is the bubble? >> visible=true")
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "guess":
            break
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    page.wait_for_selector("#figures[data-step-ps]")
    before = step_of(page)
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == "control-gbs":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", outline
    page.keyboard.press("ArrowRight")
    assert step_of(page) != before
    opened.close()


def test_fits_desk_and_phone_and_can_be_read(lab, native, size):
    """1280 and 390 pixels, light and dark: nothing sticks out, everything has a name."""
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            opened = lab(width, scheme)
            for place in ("#lesson=22_pipeline_bubble", "#lesson=17_ring", "#bench"):
                page = opened.go(place)
                if "lesson" in place:
                    show(page)
                assert overflow(page) <= 0, (width, scheme, place, overflow(page))
                assert look(page) == [], (width, scheme, place, look(page))
            opened.close()


BAD = [
    'schema = 1\n[model]\npreset = "gpt2"\n[cluster]\nname = "dgx-a100"\n[training]\nmbz = 1\n',
    'schema = 1\n[model]\npreset = "gpt9"\n[cluster]\nname = "dgx-a100"\n',
    'schema = 1\n[model]\npreset = "gpt2"\n[cluster]\nname = "dgx-a100"\n[parallelism]\ntp = 3\n',
    "schema = \n",
    'schema = 1\n[model]\npreset = "<img src=x onerror=alert(1)>"\n[cluster]\nname = "dgx-1"\n',
]


def type_scenario(page, toml):
    page.fill("#toml", toml)
    page.wait_for_timeout(400)


def test_bench_tells_mistakes_as_the_command_line_does(lab, native, size):
    """Word for word, and no text becomes markup."""
    opened = lab()
    page = opened.go("#bench")
    for toml in BAD:
        type_scenario(page, toml)
        shown = page.locator("#errors p").all_inner_texts()
        assert shown == native.error_of(toml), (shown, native.error_of(toml))
    assert page.locator("img").count() == 0
    title = '<img src=x onerror=alert(1)>'
    type_scenario(page, f'schema = 1\ntitle = "{title}"\n[model]\npreset = "gpt2"\n'
                        '[cluster]\nname = "dgx-a100"\n')
    assert page.inner_text("#errors") == "" and page.locator("img").count() == 0
    opened.close()


def test_a_link_carries_the_scenario(lab, native, size):
    """What was typed is there again behind the address, with the same number."""
    opened = lab()
    page = opened.go("#bench")
    toml = (ROOT / "scenarios" / "pipeline-bubble.toml").read_text(encoding="utf-8")
    type_scenario(page, toml + "# ü → ✓\n")
    number, address = step_of(page), page.evaluate("location.hash")
    assert number == native.predict(ROOT / "scenarios" / "pipeline-bubble.toml")
    page = opened.go(address)
    assert page.input_value("#toml") == toml + "# ü → ✓\n"
    assert step_of(page) == number
    page = opened.go("#bench=%%%")
    assert page.locator("#errors p").count() > 0
    page = opened.go("#lesson=%3Cb%3Ex")
    assert page.locator("main b").count() == 0 and "No such lesson" in page.inner_text("main")
    opened.close()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    file, program = Path(sys.argv[1]), sys.argv[2]
    if not file.exists():
        skip(f"there is no {file.name} (tools/lab/build makes it)")
    api, executable = playwright_api(), chromium()
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_") and
             (len(sys.argv) == 3 or name in sys.argv[3:])]
    assert tests, sys.argv[3:]
    with api() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])

        def lab(width=1280, scheme="light"):
            return Opened(browser, file.resolve().as_uri(), width, scheme)

        for test in tests:
            begun = time.monotonic()
            test(lab, Native(program), file.stat().st_size)
            print(f"ok {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
