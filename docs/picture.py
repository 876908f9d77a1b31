"""Draws what `pointsman show` prints as an SVG: the README's picture. Needs nothing but Python."""

import html
import os
import re
import subprocess
import sys
import tempfile

COMMAND = ["show", "router.safetensors", "--route", "expert=0.08", "--abstain", "0.47"]
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#76e3ea"}
CHAR, LINE, PAD = 8.43, 19, 18


def spans(line):
    """Text and style of each run between escape sequences."""
    style = {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b["):
            if part:
                yield part, dict(style)
            continue
        for code in part[2:-1].split(";"):
            if code in ("", "0"):
                style = {}
            elif code == "1":
                style["font-weight"] = "bold"
            elif code == "2":
                style["fill"] = "#8b949e"
            elif code in COLOURS:
                style["fill"] = COLOURS[code]


def draw(lines):
    width = max(sum(len(text) for text, _ in spans(line)) for line in lines) * CHAR + 2 * PAD
    height = len(lines) * LINE + 2 * PAD + 22
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14">'
    )
    yield f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#0d1117"/>'
    for i, colour in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        yield f'<circle cx="{PAD + 6 + 20 * i}" cy="18" r="6" fill="{colour}"/>'
    for number, line in enumerate(lines):
        y, column = PAD + 34 + number * LINE, 0
        for text, style in spans(line):
            if text.strip():
                attributes = "".join(f' {key}="{value}"' for key, value in ({"fill": "#e6edf3"} | style).items())
                # Each run is placed and stretched, so that columns align in any font.
                yield (
                    f'<text x="{PAD + column * CHAR:.2f}" y="{y}" textLength="{len(text) * CHAR:.2f}" '
                    f'xml:space="preserve"{attributes}>{html.escape(text)}</text>'
                )
            column += len(text)
    yield "</svg>\n"


def main(binary, target):
    binary = os.path.abspath(binary)
    with tempfile.TemporaryDirectory() as folder:
        run = lambda args, **more: subprocess.run([binary, *args], cwd=folder, check=True, capture_output=True, text=True, **more)
        run(["demo", "-o", "."])
        shown = run(COMMAND, env={**os.environ, "CLICOLOR_FORCE": "1", "COLUMNS": "128"}).stdout
    lines = ["\x1b[32m$\x1b[0m \x1b[1mpointsman " + " ".join(COMMAND) + "\x1b[0m", *shown.rstrip().split("\n")]
    with open(target, "w", encoding="utf-8") as out:
        out.write("\n".join(draw(lines)))


if __name__ == "__main__":
    main(*sys.argv[1:])
