"""A bar chart as SVG: one bar a model, on a logarithmic scale around 1."""

import math
from xml.sax.saxutils import escape

LABEL, WIDTH, END = 230, 430, 60  # left of the bars, the bars, right of them
ROW, BAR, TOP = 18, 12, 54
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #6e7781 }
.line { stroke: #d0d7de }
.one { stroke: #24292f }
.better { fill: #1a7f64 }
.worse { fill: #c2571a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .faint { fill: #8d96a0 } .line { stroke: #30363d } .one { stroke: #e6edf3 }
  .better { fill: #3fb68b } .worse { fill: #e07b39 }
}"""


def bars(title, below, rows):
    """`rows` are (label, ratio or None)."""
    known = [r for _, r in rows if r]
    low, high = scale(known)
    step = WIDTH / (high - low)

    def at(ratio):
        return LABEL + (min(max(math.log2(ratio), low), high) - low) * step
    height = TOP + ROW * len(rows) + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + WIDTH + END} {height}" role="img" aria-label="{escape(title)}">',
           f"<style>{STYLE}\n</style>", f'<text class="title" x="8" y="20">{escape(title)}</text>',
           f'<text class="faint" x="8" y="38">{escape(below)}</text>']
    for power in range(math.ceil(low), math.floor(high) + 1):
        x, name = at(2.0 ** power), f"{2 ** power}" if power >= 0 else f"1/{2 ** -power}"
        out.append(f'<line class="{"one" if power == 0 else "line"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 20}"/>')
        out.append(f'<text class="faint" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{name}</text>')
    for i, (label, ratio) in enumerate(rows):
        y = TOP + i * ROW
        out.append(f'<text x="{LABEL - 8}" y="{y + 10}" text-anchor="end">{escape(label)}</text>')
        if ratio:
            start, end = sorted((at(1), at(ratio)))
            out.append(f'<rect class="{"better" if ratio >= 1 else "worse"}" x="{start:.1f}" y="{y}" width="{max(end - start, 1):.1f}" height="{BAR}"/>')
            out.append(f'<text x="{end + 5:.1f}" y="{y + 10}">{ratio:.2f}</text>')
        else:
            out.append(f'<text class="faint" x="{at(1) + 5:.1f}" y="{y + 10}">no figure</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def scale(ratios):
    """Powers of two at both ends; 1 is always inside."""
    low = math.floor(min(map(math.log2, ratios), default=0) * 2) / 2
    high = math.ceil(max(map(math.log2, ratios), default=0) * 2) / 2
    return min(low, -1), max(high, 1)
