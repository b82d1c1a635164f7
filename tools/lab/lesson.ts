// One lesson: the question, a guess, then the answer with its controls.
import { element, when_idle } from "./dom";
import { bench_link, lesson_link } from "./link";
import { show_blocks, show_errors, show_figure, show_run, width_at } from "./shown";
import { Answer, ask, Control, Figure, Lesson, Picture, Point, Reveal } from "./simulator";

/** Where the learner stands: what is set, and what was guessed. */
interface Desk {
  lesson: Lesson;
  sets: Map<string, string>;
  guess: string;
  errors: HTMLElement;
  figures: HTMLElement;
  drawing: HTMLElement;
  grade: HTMLElement;
  text: HTMLElement;
  note: HTMLElement;
  curve: HTMLElement;
  link: HTMLAnchorElement;
  points: Map<string, Point>;  // of the curve, by what was set
  moved: number;               // when a control was, last
  later: number;
}

function sets_of(desk: Desk): string[] {
  return [...desk.sets].map(([key, value]) => `${key}=${value}`);
}

/** Whether a control stands elsewhere than the lesson's scenario. */
function is_moved(desk: Desk): boolean {
  const own = new Map(desk.lesson.controls.map((one) => [one.key, one.now]));
  return [...desk.sets].some(([key, value]) => own.get(key) !== value);
}

/** The picture at once; text and curve, which take more runs, when the hand rests. */
function redraw(desk: Desk): void {
  const set = sets_of(desk);
  const begun = performance.now();
  const run: Answer<Picture> =
    ask({ ask: "picture", name: desk.lesson.name, set, width: width_at(desk.drawing) });
  show_errors(desk.errors, run.errors ?? []);
  if (!run.errors) {
    show_run(desk.figures, desk.drawing, run);
    desk.link.href = bench_link(run.toml);
  }
  desk.drawing.setAttribute("data-ms", (performance.now() - begun).toFixed(1));
  history.replaceState(null, "", lesson_link(desk.lesson.name, set));
  window.clearTimeout(desk.later);
  desk.moved = begun;
  if (!run.errors) desk.later = window.setTimeout(() => retell(desk), 40);
}

function retell(desk: Desk): void {
  if (!desk.text.isConnected) return;  // another lesson is shown
  const told: Answer<Reveal> = ask({
    ask: "reveal", name: desk.lesson.name, set: sets_of(desk), guess: desk.guess,
  });
  if (told.errors) return show_errors(desk.errors, told.errors);
  desk.grade.className = told.grade === null ? "" : told.grade.right ? "right" : "wrong";
  desk.grade.textContent = told.grade === null ? `The run says ${told.answer}.`
    : `${told.grade.right ? "Right." : "Not quite."} ${told.grade.words}`;
  desk.text.replaceChildren(...show_blocks(told.text));
  desk.note.hidden = !is_moved(desk);
  desk.text.setAttribute("data-ms", (performance.now() - desk.moved).toFixed(1));
  plot(desk);
}

/** The curve a point at a time, each its own task: a hand that moves again need not wait for it. A
    point is simulated once; a move along the curve's own axis needs none. */
function plot(desk: Desk): void {
  const axis = desk.lesson.axis;
  if (axis === null) return desk.curve.replaceChildren();
  const set = sets_of(desk);
  const others = axis.is_key ? set.filter((one) => !one.startsWith(`${axis.name}=`)) : set;
  const key = (at: string) => JSON.stringify([...others].sort().concat(at));
  const points = axis.values.map((at) => desk.points.get(key(at)) ?? null);
  const missing = points.indexOf(null);
  const drawn: Answer<{ curve: Figure }> =
    ask({ ask: "curve", name: desk.lesson.name, set, points, width: width_at(desk.drawing) });
  if (drawn.errors) return show_errors(desk.errors, drawn.errors);
  show_figure(desk.curve, drawn.curve);
  if (missing < 0)
    return desk.curve.setAttribute("data-ms", (performance.now() - desk.moved).toFixed(1));
  desk.curve.removeAttribute("data-ms");
  desk.later = window.setTimeout(() => {
    if (!desk.curve.isConnected) return;  // another lesson is shown
    const at = axis.values[missing];
    const point: Answer<Point> = ask({ ask: "point", name: desk.lesson.name, set: others, at });
    if (point.errors) return show_errors(desk.errors, point.errors);
    desk.points.set(key(at), point);
    plot(desk);
  });
}

let is_warm = false;

/** Browsers compile code well only when it has run for a while: let it, while the question is read,
    so that the first moves of a control are as quick as the later ones. */
function warm_up(desk: Desk, answer: HTMLElement): void {
  const most = is_warm ? 100 : 400;  // ms; most code is every lesson's
  let spent = 0;
  const run = (idle: number) => {
    if (!answer.isConnected) return;  // another lesson is shown
    const begun = performance.now();
    do {
      ask({ ask: "picture", name: desk.lesson.name, set: sets_of(desk), width: 800 });
    } while (performance.now() - begun < idle / 2);
    spent += performance.now() - begun;
    if (spent < most) return when_idle(run);
    is_warm = true;
    answer.setAttribute("data-warm", "");
  };
  when_idle(run);
}

/** Numbers get a slider over the control's values, words a list. */
function control(desk: Desk, one: Control): HTMLElement {
  const id = `control-${one.key.replace(/[^a-z_]/g, "-")}`;
  const numeric = one.values.every((value) => /^[0-9.]/.test(value));
  const now = Math.max(0, one.values.indexOf(desk.sets.get(one.key) ?? one.now));
  const shown = element("output", { for: id }, one.values[now]);
  const changed = (place: number) => {
    shown.textContent = one.values[place];
    field.setAttribute("aria-valuetext", one.values[place]);
    desk.sets.set(one.key, one.values[place]);
    redraw(desk);
  };
  const field: HTMLInputElement | HTMLSelectElement = numeric
    ? element("input", { type: "range", id, min: "0", max: String(one.values.length - 1),
                         step: "1", value: String(now), "aria-valuetext": one.values[now] })
    : element("select", { id }, ...one.values.map((value, i) => element(
        "option", { value: String(i), selected: i === now ? "" : null }, value)));
  field.addEventListener("input", () => changed(Number(field.value)));
  return element("div", { class: "control", title: one.help },
                 element("label", { for: id }, one.key, ...(numeric ? [" ", shown] : [])), field);
}

function reveal(desk: Desk, at: HTMLElement): void {
  const lesson = desk.lesson;
  const controls = element("fieldset", {}, element("legend", {}, "Try"),
    element("div", { class: "controls" }, ...lesson.controls.map((one) => control(desk, one))),
    desk.errors);
  at.replaceChildren(element("h2", {}, "Answer"), desk.grade, desk.text, desk.note,
                     ...(lesson.controls.length > 0 ? [controls] : [desk.errors]),
                     desk.figures, desk.drawing, desk.curve, element("p", {}, desk.link));
  redraw(desk);
  window.clearTimeout(desk.later);
  retell(desk);
}

function guess_form(desk: Desk, answer: HTMLElement, done: () => void): HTMLElement {
  const field = element("input", { type: "text", id: "guess", autocomplete: "off",
                                   inputmode: "decimal", size: "10", "aria-describedby": "wrong" });
  const wrong = element("div", { id: "wrong", role: "alert" });
  const show_me = element("button", { type: "button", class: "plain" }, "Show me");
  const form = element("form", {},
    element("div", {}, element("label", { for: "guess" },
                               `Your guess${desk.lesson.unit ? ` in ${desk.lesson.unit}` : ""}`),
            field),
    element("button", { type: "submit" }, "Check"), show_me, wrong);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const guess = field.value.trim();
    const told: Answer<{ guess?: string }> = ask({ ask: "guess", name: desk.lesson.name, guess });
    show_errors(wrong, told.errors ?? []);
    if (told.errors) return field.focus();
    desk.guess = guess;
    reveal(desk, answer);
    done();
  });
  show_me.addEventListener("click", () => { reveal(desk, answer); done(); });
  return form;
}

/** Fills `main` with the lesson; `done` is called when its answer was shown. */
export function show_lesson(main: HTMLElement, name: string, sets: string[],
                            done: () => void): void {
  const lesson: Answer<Lesson> = ask({ ask: "lesson", name });
  if (lesson.errors) {
    const errors = element("div", { role: "alert" });
    show_errors(errors, lesson.errors);
    return main.replaceChildren(element("h1", {}, "No such lesson"), errors);
  }
  const desk: Desk = {
    lesson, sets: new Map(), guess: "", points: new Map(), moved: 0, later: 0,
    errors: element("div", { role: "alert", id: "errors" }),
    figures: element("dl", { class: "figures", id: "figures" }),
    drawing: element("figure", { id: "picture" }),
    grade: element("p", { role: "status", id: "grade" }),
    text: element("div", { id: "reveal" }),
    note: element("p", { id: "moved", class: "note", hidden: "" },
                  "You have moved a control: the figures above are those of your settings, and " +
                  "what is said in words is about the lesson's own."),
    curve: element("figure", { id: "curve" }),
    link: element("a", { href: bench_link(lesson.toml), id: "open-bench" },
                  "Open this scenario on the bench"),
  };
  for (const set of sets) {
    const equals = set.indexOf("=");
    if (equals > 0) desk.sets.set(set.slice(0, equals), set.slice(equals + 1));
  }
  const answer = element("section", { "aria-label": "Answer" });
  main.replaceChildren(element("p", { class: "topic" }, `${lesson.number} · ${lesson.topic}`),
                       element("h1", {}, lesson.title), ...show_blocks(lesson.idea),
                       element("h2", {}, "Question"), ...show_blocks(lesson.question),
                       guess_form(desk, answer, done), answer);
  // A link with changes is somebody's result: it is shown.
  if (desk.sets.size > 0) reveal(desk, answer);
  warm_up(desk, answer);
}
