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

const svg_space = "http://www.w3.org/2000/svg";
const drawn = new Set(["svg", "g", "title", "desc", "style", "rect", "line", "circle", "path",
                       "text"]);
const entities: Record<string, string> = { lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'" };

function plain(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(#?\w+);/g, (all, name) => entities[name] ?? all);
}

/** A picture of the simulator's own writer (tools/report/svg.cpp), element by element, and of its
    elements only: what is anything else is no picture. The browser's own reader of XML takes five
    times as long for the long paths of a large picture. */
export function picture(svg: string): Element | null {
  const part = /<(\/?)([a-z]+)((?: [a-zA-Z][a-zA-Z0-9-]*="[^"]*")*)(\/?)>|([^<]+)/gy;
  const attribute = / ([a-zA-Z][a-zA-Z0-9-]*)="([^"]*)"/g;
  const open: Element[] = [];
  let whole: Element | null = null;
  for (let at = part.exec(svg); at !== null; at = part.exec(svg)) {
    const [, closes, name, attributes, is_empty, text] = at;
    const parent = open[open.length - 1];
    if (text !== undefined) {
      // Between elements there are line ends only.
      if (parent && !/^\s*$/.test(text)) parent.append(plain(text));
    } else if (closes) {
      if (open.pop()?.nodeName !== name) return null;
    } else {
      if (!drawn.has(name) || (whole === null) !== (name === "svg")) return null;
      const made = document.createElementNS(svg_space, name);
      for (const [, key, value] of attributes.matchAll(attribute))
        if (key !== "xmlns" && !key.startsWith("on")) made.setAttribute(key, plain(value));
      if (parent) parent.append(made);
      whole ??= made;
      if (!is_empty) open.push(made);
    }
    if (part.lastIndex === svg.length) return open.length === 0 ? whole : null;
  }
  return null;
}

/** `words` with what stands in backticks as code. */
export function inline(words: string): Child[] {
  return words.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/** When nothing else is to be done; where the browser cannot tell, soon. `task` is told for how
    many milliseconds it may go on. */
export function when_idle(task: (milliseconds: number) => void): void {
  if ("requestIdleCallback" in window)
    window.requestIdleCallback((idle) => task(idle.timeRemaining()), { timeout: 500 });
  else setTimeout(() => task(10), 50);
}
