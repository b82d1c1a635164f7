// Elements from words. Text only ever becomes text: nothing here, or anywhere in the page, sets
// innerHTML.

type Child = Node | string;

/** An element with attributes and children; an attribute that is null is left out. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
    tag: Tag, attributes: Record<string, string | null> = {},
    ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A picture of the simulator's own writer, read as XML: what is no SVG is not shown. */
export function picture(svg: string): Element | null {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  if (parsed.nodeName !== "svg") return null;
  for (const alien of parsed.querySelectorAll("script, foreignObject, a")) alien.remove();
  return document.importNode(parsed, true);
}

/** `words` with what stands in backticks as code. */
export function inline(words: string): Child[] {
  return words.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/** When nothing else is to be done; where the browser cannot tell, soon. */
export function when_idle(task: () => void): void {
  if ("requestIdleCallback" in window) window.requestIdleCallback(task);
  else setTimeout(task, 50);
}
