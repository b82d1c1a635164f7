// The simulator in WebAssembly, and the words it is asked in (tools/lab/answer.hpp).

export interface Problem { text: string; line?: number; column?: number }
export interface Block { formula: boolean; text: string }
export interface Figure { name: string; title: string; description: string; svg: string }
export interface Control { key: string; values: string[]; now: string; help: string }
export interface LessonName { name: string; number: string; title: string; topic: string }
export interface Lesson extends LessonName {
  unit: string;
  idea: Block[];
  question: Block[];
  controls: Control[];
  axis: { name: string; values: string[]; is_key: boolean } | null;  // of the curve
  toml: string;
}
export interface Picture {
  title: string;
  toml: string;  // the scenario, with what was changed
  step_ps: string;
  figures: { name: string; text: string }[];
  picture: Figure;
}
export interface Reveal {
  answer: string;
  grade: { right: boolean; words: string } | null;
  text: Block[];
}
export interface Point { value: number | null; words: string }
export type Answer<T> = T & { errors?: Problem[] };

interface Module {
  ccall(name: string, result: string, types: string[], values: unknown[]): string;
}
declare const createSimulator: (with_: { wasmBinary: ArrayBuffer }) => Promise<Module>;
// TypeScript 4.8 does not know it, browsers do since 2023.
declare const DecompressionStream: new (format: "gzip") => ReadableWritablePair;

let module: Module | null = null;

/** The page's own WebAssembly, unpacked: nothing is fetched, not even from the page itself. */
async function code(): Promise<ArrayBuffer> {
  const packed = atob(document.getElementById("code")?.textContent ?? "");
  const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}

export async function start(): Promise<void> {
  module = await createSimulator({ wasmBinary: await code() });
}

/** Asks; what goes wrong inside comes back as an error in words. */
export function ask<T>(question: Record<string, unknown>): Answer<T> {
  if (module === null) throw new Error("the simulator is not there yet");
  try {
    return JSON.parse(module.ccall("lab_ask", "string", ["string"], [JSON.stringify(question)]));
  } catch (error) {
    // A trap leaves the module in any state: the next question gets a new one.
    void start();
    return { errors: [{ text: `internal error: ${String(error)} (please report)` }] } as Answer<T>;
  }
}
