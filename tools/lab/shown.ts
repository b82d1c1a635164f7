// What lessons and bench both show of a run: figures, the picture, mistakes.
import { element, inline, picture } from "./dom";
import type { Block, Figure, Picture, Problem } from "./simulator";

export function show_blocks(blocks: Block[]): HTMLElement[] {
  return blocks.map((block) =>
    block.formula ? element("pre", { tabindex: "0" }, block.text)
                  : element("p", {}, ...inline(block.text)));
}

export function show_figure(at: HTMLElement, figure: Figure | null): void {
  const drawn = figure === null ? null : picture(figure.svg);
  if (figure === null || drawn === null) return at.replaceChildren();
  drawn.setAttribute("data-figure", figure.name);
  at.replaceChildren(drawn, element("figcaption", {}, figure.description));
}

export function show_run(figures: HTMLElement, at: HTMLElement, run: Picture): void {
  figures.setAttribute("data-step-ps", run.step_ps);
  figures.replaceChildren(...run.figures.map(
    (one) => element("div", {}, element("dt", {}, one.name), element("dd", {}, one.text))));
  show_figure(at, run.picture);
}

/** One line for each mistake, as the command line has it. */
export function show_errors(at: HTMLElement, problems: Problem[]): void {
  at.replaceChildren(...problems.map(
    (problem) => element("p", { class: "error" }, problem.text)));
}

/** How wide a picture may be here. */
export function width_at(at: HTMLElement): number {
  return Math.max(300, Math.floor(at.clientWidth || 800));
}
