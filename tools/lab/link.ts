// The part of the address behind the #: which lesson with which changes, or a whole scenario.
//
//   #lesson=22_pipeline_bubble&set=gbs%3D8192        #bench=BASE64URL of the TOML text

export interface Place {
  lesson: string | null;
  sets: string[];
  toml: string | null;  // of the bench; "" is its empty form
}

function to_base64url(text: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

function from_base64url(text: string): string | null {
  try {
    const bytes = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    return new TextDecoder().decode(Uint8Array.from(bytes, (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

export function read_place(hash: string): Place {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const bench = words.get("bench");
  return {
    lesson: words.get("lesson"),
    sets: words.getAll("set"),
    toml: bench === null ? null : from_base64url(bench) ?? "# the link is damaged\n",
  };
}

export function lesson_link(name: string, sets: string[]): string {
  const words = new URLSearchParams([["lesson", name]]);
  for (const set of sets) words.append("set", set);
  return `#${words}`;
}

export function bench_link(toml: string): string {
  return `#bench=${to_base64url(toml)}`;
}
