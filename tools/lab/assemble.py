# Puts the page together: style and scripts go into index.html, so that it is one file that opens
# from disk without a server.
"""Usage: assemble.py INDEX.html OUTPUT.html NAME=FILE...   (NAME stands as /*{NAME}*/ in it)"""

import base64
import gzip
import sys
from pathlib import Path

LARGEST = 3_000_000  # bytes: what the page may weigh


def text_of(file):
    """What stands in the page for a file: WebAssembly packed, the rest as it is."""
    if file.suffix == ".wasm":
        return base64.b64encode(gzip.compress(file.read_bytes(), 9, mtime=0)).decode("ascii")
    # A script ends where its text says so, even inside a string.
    return file.read_text(encoding="utf-8").replace("</script", "<\\/script")


def main():
    index, output, *parts = sys.argv[1:]
    page = Path(index).read_text(encoding="utf-8")
    for part in parts:
        name, file = part.split("=", 1)
        mark = "/*{" + name + "}*/"
        assert page.count(mark) == 1, f"{index} has no {mark}"
        page = page.replace(mark, text_of(Path(file)))
    size = len(page.encode("utf-8"))
    if size > LARGEST:
        sys.exit(f"error: {output} would have {size} bytes, more than {LARGEST}")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(output + ".new")
    temporary.write_text(page, encoding="utf-8")
    temporary.replace(output)
    print(f"{output}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
