// The page: a list of lessons, a lesson or the bench beside it, and the address as the only state
// besides which lessons were done.
import { show_bench } from "./bench";
import { element } from "./dom";
import { lesson_link, read_place } from "./link";
import { show_lesson } from "./lesson";
import { ask, LessonName, start } from "./simulator";

const done_key = "rehearse-lab-done";

function done_lessons(): Set<string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(done_key) ?? "[]");
    return new Set(Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : []);
  } catch {
    return new Set();  // no storage, or not ours
  }
}

function remember(name: string): void {
  try {
    localStorage.setItem(done_key, JSON.stringify([...done_lessons().add(name)]));
  } catch {
    // A page from disk may have no storage: then nothing is remembered.
  }
}

function by_id(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found;
}

function show_list(lessons: LessonName[], current: string | null): void {
  const done = done_lessons();
  const items = lessons.map((lesson) => element("li", {}, element(
    "a", { href: lesson_link(lesson.name, []), class: done.has(lesson.name) ? "done" : null,
           "aria-current": lesson.name === current ? "page" : null },
    element("span", { class: "number" }, lesson.number), lesson.title)));
  const list = by_id("list");
  list.replaceChildren(element("ol", {}, ...items));
  // The current one in the middle of the list, without moving the page.
  const shown = list.querySelector<HTMLElement>("[aria-current]");
  if (shown) list.scrollTop = shown.offsetTop - list.offsetTop - list.clientHeight / 2;
}

function show(lessons: LessonName[], moves_focus: boolean): void {
  const place = read_place(location.hash);
  const main = by_id("main");
  const is_bench = place.toml !== null;
  const name = is_bench ? null : place.lesson ?? lessons[0]?.name ?? null;
  by_id(is_bench ? "to-bench" : "to-lessons").setAttribute("aria-current", "page");
  by_id(is_bench ? "to-lessons" : "to-bench").removeAttribute("aria-current");
  show_list(lessons, name);
  if (is_bench) show_bench(main, place.toml ?? "");
  else if (name !== null)
    show_lesson(main, name, place.sets, () => { remember(name); show_list(lessons, name); });
  document.title = `${main.querySelector("h1")?.textContent ?? "Rehearse"} · Rehearse lab`;
  if (moves_focus) {
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

async function begin(): Promise<void> {
  await start();
  const { lessons } = ask<{ lessons: LessonName[] }>({ ask: "lessons" });
  window.addEventListener("hashchange", () => show(lessons, true));
  show(lessons, false);
  document.body.setAttribute("data-ready", performance.now().toFixed(0));
}

begin().catch((error: unknown) => {
  by_id("main").replaceChildren(
    element("p", { role: "alert", class: "error" }, `The simulator does not start: ${error}`));
});
