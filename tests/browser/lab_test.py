# The lab in a real browser: every lesson opens, its controls change picture and number, the number
# is that of `rehearse predict`, by keyboard too, on a phone too, and quickly enough.
"""Usage: lab_test.py PAGE.html REHEARSE [TEST...]   (exit 77: nothing to test with)"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab_page import ROOT, Native, Opened, chromium, look, overflow, playwright_api, skip, step_of

LARGE_PIPELINE = ("#lesson=22_pipeline_bubble&set=cluster.node.gpus%3D16&set=pp%3D16"
                  "&set=gbs%3D32768")
LESSONS = sorted((ROOT / "scenarios" / "lessons").glob("[0-9]*.toml"))


def show(page):
    """The answer of the lesson that is open, without a guess."""
    page.get_by_role("button", name="Show me").click()
    page.wait_for_selector("#figures[data-step-ps]")
    page.wait_for_selector("#picture svg")


def test_opens_from_disk_without_asking_anybody(lab, native, size):
    """Three megabytes at most; tools/bench/lab_bench.py tells how quickly."""
    assert size < 3_000_000, size
    opened = lab()
    page = opened.go()
    assert page.locator("#list a").count() == len(LESSONS)
    opened.close()


def controls_of(page):
    """(id, key, values, place) of each control of the open lesson."""
    return page.evaluate("""() => [...document.querySelectorAll(".control")].map((c) => {
      const f = c.querySelector("input, select");
      const key = c.querySelector("label").firstChild.textContent;
      return [f.id, key, f.tagName === "SELECT" ? f.options.length : Number(f.max) + 1,
              Number(f.value)];
    })""")


# Moves each control as a hand would, to some places and back, and tells what the page then shows.
MOVES = """(controls) => {
  const picture = () => document.querySelector("#picture").innerHTML;
  const step = () => document.querySelector("#figures").getAttribute("data-step-ps");
  const first = picture(), number = step();
  const move = (field, place) => {
    field.value = String(place);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  return controls.map(([id, places, now]) => {
    const field = document.getElementById(id);
    const shown = places.map((place) => {
      move(field, place);
      return {
        value: field.tagName === "SELECT" ? field.options[place].textContent
                                          : field.getAttribute("aria-valuetext"),
        step: step(), is_redrawn: picture() !== first,
        errors: document.querySelector("#errors").innerText,
      };
    });
    move(field, now);
    return { shown, is_back: picture() === first && step() === number };
  });
}"""


def move(page, field, place):
    page.evaluate("""([id, place]) => {
      const f = document.getElementById(id);
      f.value = String(place);
      f.dispatchEvent(new Event("input", { bubbles: true }));
    }""", [field, place])


def retold(page, field, places):
    """Whether the answer's number differs between two places of a control."""
    texts = []
    for place in places:
        page.evaluate("document.querySelector('#reveal').removeAttribute('data-ms')")
        move(page, field, place)
        page.wait_for_selector("#reveal[data-ms]")
        texts.append(page.inner_text("#grade"))
    move(page, field, places[0])
    return texts[0] != texts[1]


def open_lesson(page, file):
    """By its address, without loading the page again."""
    page.evaluate("name => { location.hash = `#lesson=${name}`; }", file.stem)
    page.wait_for_function("n => document.querySelector('main .topic')?.textContent.startsWith(n)",
                           arg=file.stem[:2])


def assert_readable(page, width, scheme, name):
    """Nothing is wider than the window, everything has a name and enough contrast, light and
    dark."""
    assert overflow(page) <= 0, (width, name, overflow(page))
    problems = look(page)
    # The other scheme has the same elements in other colours.
    page.emulate_media(color_scheme="dark" if scheme == "light" else "light")
    problems += look(page)
    page.emulate_media(color_scheme=scheme)
    assert problems == [], (width, scheme, name, problems)


def test_every_lesson_shows_what_predict_prints(lab, native, size):
    """At its own values, and with every control moved to its ends and its middle: to the
    picosecond, natively and in WebAssembly. The command line runs beside the browser. On a desk:
    nothing sticks out, everything has a name."""
    opened = lab(1280, "light")
    page = opened.go()
    told_only, asked = [], []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        def ask(file, sets, shown):
            asked.append((file.stem, sets, shown, pool.submit(native.predict, file, sets)))

        for file in LESSONS:
            open_lesson(page, file)
            assert overflow(page) <= 0, (file.stem, overflow(page))
            show(page)
            assert page.locator("#reveal p").count() > 0, file.stem
            assert_readable(page, 1280, "light", file.stem)
            first = step_of(page)
            ask(file, [], first)
            controls = controls_of(page)
            moves = page.evaluate(MOVES, [
                [field, sorted({0, count // 2, count - 1} - {now}), now]
                for field, _, count, now in controls])
            for (field, key, count, now), moved in zip(controls, moves):
                assert moved["is_back"], (file.stem, key)
                for at in moved["shown"]:
                    assert at["errors"] == "", (file.stem, key, at)
                    ask(file, [f"{key}={at['value']}"], at["step"])
                if (all(at["step"] == first for at in moved["shown"]) or
                        not any(at["is_redrawn"] for at in moved["shown"])):
                    told_only.append(f"{file.stem} {key}")
                    assert retold(page, field, [now, 0 if now else count - 1]), told_only[-1]
        for name, sets, shown, told in asked:
            assert shown == told.result(), (name, sets, shown, told.result())
    # These change how many steps are needed, or are for nothing, and none of them: what is told
    # changes, the step does not.
    assert told_only == ["05_large_batches gradient_noise_scale",
                         "35_loss_scaling loss_scale_window"], told_only
    opened.close()
    print(f"  {len(LESSONS)} lessons, {len(asked)} numbers as predict prints them")


def test_settles_soon_with_a_curve(lab, native, size):
    """A point for each value of the axis, the present one marked; a move along the axis itself
    simulates no point again."""
    opened = lab()
    page = opened.go("#lesson=22_pipeline_bubble")
    show(page)
    page.wait_for_selector("#curve[data-ms]")
    bars = page.locator("#curve svg rect.s1, #curve svg rect.s2")
    assert bars.count() == 7, bars.count()
    assert "…" not in page.text_content("#curve svg")
    before = page.inner_html("#curve")
    move(page, "control-gbs", 0)
    page.wait_for_function("b => document.querySelector('#curve').innerHTML !== b", arg=before)
    assert page.locator("#curve svg rect.s2").count() == 1
    assert page.evaluate("document.querySelector('#curve').hasAttribute('data-ms')")
    opened.close()


def test_draws_all_of_a_large_pipeline(lab, native, size):
    """16 devices with 64 micro-batches: a box for each forward and backward, none left out."""
    opened = lab()
    page = opened.go(LARGE_PIPELINE)
    page.wait_for_selector("#picture svg")
    assert page.inner_text("#errors") == ""
    boxes = page.evaluate("""() => [...document.querySelectorAll("#picture svg path")].reduce(
        (sum, path) => sum + (path.getAttribute("d").match(/M/g) || []).length, 0)""")
    assert boxes >= 2 * 16 * 64, boxes
    assert step_of(page) == native.predict(ROOT / "scenarios/lessons/22_pipeline_bubble.toml",
                                           ["cluster.node.gpus=16", "pp=16", "gbs=32768"])
    opened.close()


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


FOCUSED = "document.activeElement.id || document.activeElement.textContent"


def tab_to(page, wanted, most):
    """Presses Tab until what has the focus is wanted."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if wanted in page.evaluate(FOCUSED):
            return
    raise AssertionError(f"{wanted} is not reached by {most} Tabs")


def test_works_by_keyboard_alone(lab, native, size):
    """To a lesson, through its guess, to a slider, and the number changes."""
    opened = lab()
    page = opened.go()
    tab_to(page, "How large is the bubble?", 60)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=How large is the bubble? >> visible=true")
    tab_to(page, "guess", 10)
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    page.wait_for_selector("#figures[data-step-ps]")
    before = step_of(page)
    tab_to(page, "control-gbs", 10)
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", outline
    page.keyboard.press("ArrowRight")
    assert step_of(page) != before
    opened.close()


def test_every_lesson_works_by_keyboard_alone_and_on_a_phone(lab, native, size):
    """From its heading through the guess to every control, each of which an arrow moves; on 390
    pixels nothing sticks out, and everything has a name."""
    opened = lab(390, "dark")
    page = opened.go()
    for file in LESSONS:
        open_lesson(page, file)
        assert overflow(page) <= 0, (file.stem, overflow(page))
        tab_to(page, "guess", 8)
        page.keyboard.type("7")
        page.keyboard.press("Enter")
        page.wait_for_selector("#figures[data-step-ps]")
        assert page.inner_text("#grade") != "", file.stem
        assert page.locator("#moved").is_hidden(), file.stem
        assert_readable(page, 390, "dark", file.stem)
        for field, key, count, now in controls_of(page):
            tab_to(page, field, 8)
            # Right and down are onwards, in a slider and in a list.
            page.keyboard.press("ArrowRight" if now + 1 < count else "ArrowLeft")
            moved = page.evaluate("new URLSearchParams(location.hash.slice(1)).getAll('set')")
            assert any(one.startswith(key + "=") for one in moved), (file.stem, key, moved)
            assert page.inner_text("#errors") == "", (file.stem, key)
    # What is told in words is about the lesson's own settings, and says so once they are left.
    page.wait_for_selector("#moved:not([hidden])")
    opened.close()


def test_bench_fits_desk_and_phone_and_can_be_read(lab, native, size):
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            opened = lab(width, scheme)
            page = opened.go("#bench")
            assert overflow(page) <= 0, (width, scheme, overflow(page))
            assert look(page) == [], (width, scheme, look(page))
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
    opened.close()


def test_text_of_an_address_never_becomes_markup(lab, native, size):
    """Wherever it is shown: as a lesson's name, as a setting, in a scenario's own words."""
    opened = lab()
    page = opened.go("#lesson=%3Cb%3Ex")
    assert page.locator("main b").count() == 0 and "No such lesson" in page.inner_text("main")
    bad = "<img src=x onerror=alert(1)>"
    page = opened.go("#lesson=22_pipeline_bubble&set=" + quote(f"gbs={bad}"))
    shown = page.locator("#errors p").all_inner_texts()
    assert shown and bad in shown[0], shown
    lesson = ROOT / "scenarios/lessons/22_pipeline_bubble.toml"
    assert shown == native.error_of_set(lesson, f"gbs={bad}"), shown
    page = opened.go("#lesson=22_pipeline_bubble&set=" + quote(f'title="{bad}"'))
    assert page.inner_text("#errors") == "" and page.locator("#picture svg").count() == 1
    page = opened.go("#lesson=22_pipeline_bubble&set=" + quote("<b>x</b>=1"))
    assert "<b>x</b>" in page.inner_text("#errors")
    page = opened.go("#bench")
    type_scenario(page, f'schema = 1\ntitle = "{bad}"\n[model]\nmodel_type = "mlp"\n'
                        f'name = "{bad}"\nlayer_sizes = [64, 64]\n'
                        '[cluster]\nname = "dgx-a100"\n')
    page = opened.go(page.evaluate("location.hash"))
    assert bad in page.input_value("#toml")
    assert page.locator("main img, main b, main script").count() == 0
    opened.close()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    file, program = Path(sys.argv[1]), str(Path(sys.argv[2]).resolve())
    if not file.exists():
        skip(f"there is no {file.name} (tools/lab/build makes it)")
    api, executable = playwright_api(), chromium()
    from playwright.sync_api import Error as PlaywrightError
    tests = [test for name, test in sorted(globals().items()) if name.startswith("test_") and
             (len(sys.argv) == 3 or name in sys.argv[3:])]
    assert tests, sys.argv[3:]
    with api() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])

        def lab(width=1280, scheme="light"):
            return Opened(browser, file.resolve().as_uri(), width, scheme)

        failed = 0
        for test in tests:
            begun = time.monotonic()
            try:
                test(lab, Native(program), file.stat().st_size)
                print(f"ok {test.__name__} ({time.monotonic() - begun:.1f} s)", flush=True)
            except (AssertionError, PlaywrightError) as error:
                failed += 1
                print(f"FAILED {test.__name__}: {str(error)[:2000]}", flush=True)
        browser.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
