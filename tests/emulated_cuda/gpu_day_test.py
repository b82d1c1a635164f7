# The whole day on emulated GPUs: every command of it runs, and its page is whole, asks nobody for
# anything, and has each scenario predicted and run by both libraries, with pictures.
#
#   gpu_day_test.py BUILD
import html.parser
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCENARIOS = ("graph", "overlapped", "plain", "tensor", "zero1", "zero3")
EMPTY = {"meta", "link", "br"}


class Reader(html.parser.HTMLParser):
    """Which elements there are, that each is closed in its turn, and what is asked for."""

    def __init__(self):
        super().__init__()
        self.open, self.count, self.ids, self.asked, self.wrong = [], {}, [], [], []
        self.targets = []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "aria-labelledby" or name == "href" and value.startswith("#"):
                self.targets.append(value.removeprefix("#"))
            elif name in ("href", "src") and not value.startswith("data:"):
                self.asked.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def expect(condition, what):
    if not condition:
        sys.exit(f"gpu_day_test: {what}")


def main():
    build = pathlib.Path(sys.argv[1])
    page = build / "gpu-day-report.html"
    page.unlink(missing_ok=True)
    day = subprocess.run([SOURCE / "tools/gpu-day", "--emulated", build, page],
                         capture_output=True, text=True)
    expect(day.returncode == 0, f"exit code {day.returncode}: {day.stdout}{day.stderr}")
    text = page.read_text()
    reader = Reader()
    reader.feed(text)
    expect(not reader.wrong and not reader.open, f"not closed: {reader.wrong} {reader.open}")
    expect(not reader.asked and "@import" not in text, f"asks for {reader.asked}")
    expect(len(set(reader.ids)) == len(reader.ids), "two elements of one name")
    expect(set(reader.targets) <= set(reader.ids), "a reference to nothing")
    expect("script" not in reader.count, "a script that is not needed")
    for scenario in SCENARIOS:
        for library in ("own", "nccl"):
            row = (rf"<tr><td>{scenario}, collectives {library}</td><td class=\"n\">[\d.]+ us</td>"
                   r"<td class=\"n\">[\d.]+ us</td><td class=\"n\">[+-][\d.]+ %</td>")
            expect(re.search(row, text), f"{scenario} by {library} is not in the table")
    expect(reader.count["svg"] == 2 * len(SCENARIOS), f"{reader.count['svg']} pictures")
    expect(reader.count["details"] > 40, f"{reader.count['details']} parts")
    expect(re.search(r"All \d+ parts went well", text), "parts failed, or the page does not say")
    expect("Avg bus bandwidth" in text and "emulated" in text, "outputs are missing")
    told = page.with_suffix(".txt").read_text()
    expect(told.count("\n== ") > 40 and "!! failed" not in told, "the text is not whole")
    print(f"{len(text)} bytes, {reader.count['svg']} pictures, {told.count(chr(10) + '== ')} parts")


main()
