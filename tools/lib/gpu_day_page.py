# What tools/gpu-day found, as one self-contained page: what failed, predicted against measured with
# the drawings of `rehearse compare`, and the output of every part as it was.
#
#   gpu_day_page.py FOLDER PAGE
#
# FOLDER has facts.txt ("what: value" a line); NUMBER.txt for each part, its title in the first line
# and its output behind, and NUMBER.failed where it failed; SCENARIO-LIBRARY.compared.json and .html
# by `rehearse compare`.
import html
import json
import pathlib
import re
import statistics
import sys

STYLE = pathlib.Path(__file__).resolve().parents[1] / "report" / "page_style.css"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Part:
    def __init__(self, path):
        self.name = "part-" + path.stem
        self.title, _, self.output = path.read_text(errors="replace").partition("\n")
        self.failed = path.with_suffix(".failed").exists()


class Compared:
    """One scenario, predicted and run."""

    def __init__(self, path):
        self.name = path.name.removesuffix(".compared.json")
        scenario, _, library = self.name.rpartition("-")
        self.title = f"{scenario}, collectives {library}"
        self.found = json.loads(path.read_text())
        self.step = self.found["step"]
        page = path.with_suffix(".html")
        self.figures = figures_of(page.read_text(), self.name) if page.exists() else []


# The timelines, which stand alone; what the page of `compare` has for zooming stays there.
def figures_of(page, name):
    figures = []
    for kind, body in re.findall(
            r'<section id="figure-(timelines)"[^>]*>\n(.*?)</section>', page, re.S):
        body = re.sub(r'<script type="application/json".*?</script>\n?', "", body, flags=re.S)
        body = re.sub(r'<h2 id="[^"]*">', f'<h3 id="title-{kind}-{name}">', body)
        body = body.replace("</h2>", "</h3>")
        body = re.sub(r' aria-label="[^"]*: plus and minus[^"]*"',
                      f' aria-labelledby="title-{kind}-{name}"', body)
        figures.append(f'<div id="figure-{kind}-{name}">\n{body}</div>\n')
    return figures


def time_text(milliseconds):
    for factor, unit in ((1e-3, "s"), (1, "ms"), (1e3, "us")):
        if milliseconds * factor >= 1:
            break
    return f"{milliseconds * factor:.4g} {unit}"


def table(head, rows):
    text = ('<div class="table" tabindex="0" role="region" aria-label="Predicted and measured">'
            "<table>\n")
    text += "<thead><tr>" + "".join(f'<th scope="col">{html.escape(h)}</th>' for h in head)
    text += "</tr></thead>\n<tbody>\n"
    for row in rows:
        cells = [f"<td>{html.escape(row[0])}</td>"]
        cells += [f'<td class="n">{html.escape(cell)}</td>' for cell in row[1:]]
        text += "<tr>" + "".join(cells) + "</tr>\n"
    return text + "</tbody></table></div>\n"


def comparison_rows(all_compared):
    for each in all_compared:
        found, step = each.found, each.step
        yield [each.title, time_text(step["predicted_ms"]), time_text(step["measured_ms"]),
               f"{100 * step['error']:+.1f} %", f"{100 * found['predicted_overlap']:.0f} %",
               f"{100 * found['measured_overlap']:.0f} %"]


def verdict(parts, all_compared):
    failed = [part.title for part in parts if part.failed]
    yield (f"{len(failed)} of {len(parts)} parts failed: {'; '.join(failed)}." if failed else
           f"All {len(parts)} parts went well.")
    if all_compared:
        errors = [abs(each.step["error"]) for each in all_compared]
        worst = max(all_compared, key=lambda each: abs(each.step["error"]))
        yield (f"Predicted step times are off by {100 * statistics.median(errors):.1f} % in the "
               f"median of {len(errors)} runs, at worst by {100 * max(errors):.1f} % "
               f"({worst.title}).")


def write_page(facts, parts, all_compared):
    put = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<title>A day with GPUs</title>\n<link rel="icon" href="data:,">\n<style>\n'
        f'{STYLE.read_text()}</style>\n</head>\n<body>\n'
        '<a class="skip" href="#content">To the figures</a>\n<header>\n'
        '<p class="kicker">tools/gpu-day</p>\n<h1>A day with GPUs</h1>\n<dl class="facts">\n'
    ]
    for what, value in facts:
        put.append(f"<dt>{html.escape(what)}</dt><dd>{html.escape(value)}</dd>\n")
    put.append('</dl>\n<div class="verdict">\n')
    put += [f"<p>{html.escape(text)}</p>\n" for text in verdict(parts, all_compared)]
    put.append('</div>\n</header>\n<nav aria-label="Parts"><ul>\n')
    for each in all_compared:
        put.append(f'<li><a href="#compared-{each.name}">{html.escape(each.title)}</a></li>\n')
    put.append('<li><a href="#parts">every part\'s output</a></li>\n</ul></nav>\n'
               '<main id="content">\n')
    if all_compared:
        put.append("<section>\n<h2>Predicted and measured</h2>\n")
        put.append(table(["", "predicted", "measured", "error", "communication hidden, predicted",
                          "measured"], comparison_rows(all_compared)))
        put.append("</section>\n")
    for each in all_compared:
        put.append(f'<section id="compared-{each.name}">\n<h2>{html.escape(each.title)}</h2>\n')
        put += each.figures
        put.append("</section>\n")
    put.append('<section id="parts">\n<h2>Every part, as the terminal showed it</h2>\n')
    for part in parts:
        put.append(f'<details id="{part.name}"{" open" if part.failed else ""}><summary>'
                   f'{html.escape(part.title)}{": failed" if part.failed else ""}</summary>\n'
                   f'<div class="table" tabindex="0" role="region" '
                   f'aria-label="{html.escape(part.title)}"><pre>{html.escape(part.output)}</pre>'
                   '</div></details>\n')
    put.append("</section>\n</main>\n</body>\n</html>\n")
    return "".join(put)


def main():
    folder, page = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    facts = [line.split(": ", 1) for line in (folder / "facts.txt").read_text().splitlines()]
    parts = [Part(path) for path in sorted(folder.glob("[0-9]*.txt"))]
    all_compared = [Compared(path) for path in sorted(folder.glob("*.compared.json"))]
    page.write_text(write_page(facts, parts, all_compared))


main()
