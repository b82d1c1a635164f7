// The bench: a scenario of one's own, simulated as it is typed.
import { element } from "./dom";
import { bench_link } from "./link";
import { show_errors, show_run, width_at } from "./shown";
import { Answer, ask, Picture } from "./simulator";

const first = `schema = 1
title = "A pipeline of 16 devices with 64 micro-batches"

[model]
preset = "gpt3-175b"

[cluster]
name = "dgx-a100"
nodes = 16

[parallelism]
tp = 8
pp = 16
schedule = "1F1B"
recompute_granularity = "full"

[training]
micro_batch_size = 1
global_batch_size = 64
`;

/** Fills `main` with the bench; `toml` is "" for a first example. */
export function show_bench(main: HTMLElement, toml: string): void {
  const field = element("textarea", { id: "toml", spellcheck: "false", wrap: "off",
                                      "aria-describedby": "errors" });
  field.value = toml === "" ? first : toml;
  const errors = element("div", { role: "alert", id: "errors" });
  const figures = element("dl", { class: "figures", id: "figures" });
  const drawing = element("figure", { id: "picture" });
  const copied = element("span", { role: "status" });
  const copy = element("button", { type: "button", id: "copy" }, "Copy link");
  let later = 0;
  const run = () => {
    const begun = performance.now();
    const answer: Answer<Picture> =
      ask({ ask: "run", toml: field.value, width: width_at(drawing) });
    show_errors(errors, answer.errors ?? []);
    field.setAttribute("aria-invalid", answer.errors ? "true" : "false");
    if (!answer.errors) show_run(figures, drawing, answer);
    drawing.setAttribute("data-ms", (performance.now() - begun).toFixed(1));
    history.replaceState(null, "", bench_link(field.value));
  };
  field.addEventListener("input", () => {
    window.clearTimeout(later);
    later = window.setTimeout(run, 150);
  });
  copy.addEventListener("click", () => {
    history.replaceState(null, "", bench_link(field.value));
    void navigator.clipboard?.writeText(location.href).then(
      () => { copied.textContent = " copied"; },
      () => { copied.textContent = " it is in the address bar"; });
  });
  main.replaceChildren(
    element("p", { class: "topic" }, "Bench"),
    element("h1", {}, "A scenario of your own"),
    element("p", {}, "The whole language of scenarios, as rehearse predict reads it. The address ",
            "of this page carries what you type: who has the link has the scenario."),
    element("label", { for: "toml" }, "Scenario (TOML)"), field, errors,
    element("p", {}, copy, copied), figures, drawing);
  run();
}
