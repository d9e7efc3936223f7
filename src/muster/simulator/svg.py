"""Charts as SVG, written by hand: they need no library and no network."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from math import ceil, floor, log10

from muster.model.value import Value
from muster.simulator.charts import SPANS, Chart, Curve, Point

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 44
COLOURS = ("#2364aa", "#d1495b", "#2e8b57", "#e09f3e", "#7b4fa3", "#4f6d7a", "#b05b2f", "#0f8b8d")
"""Apart for most eyes, on white and on black."""

FONT = 'font-family="sans-serif" font-size="12"'
MOST_POINTS = 400
LETTER = 7
"""How wide a letter is at most, on average."""


class _Frame(Value):
    """From numbers to places on the picture."""

    x_from: float
    x_to: float
    y_to: float
    log_x: bool

    def x(self, number: float) -> float:
        if self.log_x:
            number = log10(max(number, 1e-9))
        part = (number - self.x_from) / ((self.x_to - self.x_from) or 1)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, number: float) -> float:
        return HEIGHT - BOTTOM - number / (self.y_to or 1) * (HEIGHT - TOP - BOTTOM)


def svg_of(chart: Chart) -> str:
    """The chart as one SVG element."""
    frame = _frame(chart)
    height = HEIGHT + _legend_height(chart)
    title = f'x="{LEFT}" y="18" font-size="14" font-weight="bold" fill="currentColor"'
    space = 'xmlns="http://www.w3.org/2000/svg"'
    label = f'role="img" aria-label="{escape(chart.title)}"'
    parts = [
        f'<svg {space} viewBox="0 0 {WIDTH} {height}" {FONT} {label}>',
        f"<text {title}>{escape(chart.title)}</text>",
        *_axes(chart, frame),
        *_lines(chart.lines, frame),
        *_legend(chart.lines),
        "</svg>",
    ]
    return "\n".join(parts)


def coloured(lines: Sequence[Curve]) -> Iterator[tuple[Curve, str]]:
    """Each line with its colour; a dashed one has that of the line before it."""
    place = -1
    for line in lines:
        place += not line.dashed
        yield line, COLOURS[max(0, place) % len(COLOURS)]


def _frame(chart: Chart) -> _Frame:
    xs = [x for line in chart.lines for x, _ in line.points] or [0.0, 1.0]
    most = max((y for line in chart.lines for _, y in line.points), default=1.0)
    begin, end = min(xs), max(xs)
    if chart.log_x:
        begin, end = floor(log10(max(begin, 1e-9))), ceil(log10(max(end, 1e-9)))
    return _Frame(
        x_from=begin, x_to=max(end, begin + 1e-9), y_to=_round_up(most), log_x=chart.log_x
    )


def _round_up(number: float) -> float:
    if number <= 0:
        return 1.0
    size = 10 ** floor(log10(number))
    return next(step * size for step in (1, 2, 2.5, 5, 10) if step * size >= number * 0.999)


def _axes(chart: Chart, frame: _Frame) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for number in _even(0, frame.y_to, 5):
        y = frame.y(number)
        ends = f'x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"'
        yield f'<line {ends} stroke="currentColor" opacity="0.15"/>'
        yield _text(LEFT - 6, y + 4, _short(number), "end")
    for number, text in _ticks(frame):
        yield _text(frame.x(number), bottom + 16, text, "middle")
    yield _text((LEFT + right) / 2, bottom + 34, chart.x, "middle")
    yield _text(4, TOP - 2, chart.y, "start")


def _ticks(frame: _Frame) -> Iterator[tuple[float, str]]:
    if frame.log_x:
        begin, end = 10.0**frame.x_from, 10.0**frame.x_to
        yield from ((number, text) for number, text in SPANS if begin <= number <= end)
        return
    yield from ((number, _short(number)) for number in _even(frame.x_from, frame.x_to, 6))


def _even(begin: float, end: float, most: int) -> list[float]:
    """Round numbers at even distances, from the first to the last that there is room for."""
    step = _round_up((end - begin) / most)
    first = ceil(begin / step - 1e-9)
    return [place * step for place in range(first, floor(end / step + 1e-9) + 1)]


def _lines(lines: Sequence[Curve], frame: _Frame) -> Iterator[str]:
    for line, colour in coloured(lines):
        places = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in _thinned(line.points))
        dash = ' stroke-dasharray="5 4" opacity="0.7"' if line.dashed else ""
        yield (
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}>'
            f"<title>{escape(line.name)}</title></polyline>"
        )


def _thinned(points: Sequence[Point]) -> Iterable[Point]:
    step = -(-len(points) // MOST_POINTS)
    return points if step <= 1 else [*points[::step], points[-1]]


def _legend(lines: Sequence[Curve]) -> Iterator[str]:
    named = [each for each in coloured(lines) if not each[0].dashed]
    columns = _legend_columns(lines)
    wide = (WIDTH - LEFT) // columns
    for place, (line, colour) in enumerate(named):
        x, y = LEFT + place % columns * wide, HEIGHT + 12 + place // columns * 18
        yield f'<rect x="{x}" y="{y - 9}" width="12" height="4" fill="{colour}"/>'
        yield _text(x + 18, y - 3, line.name, "start")


def _legend_columns(lines: Sequence[Curve]) -> int:
    """As many names beside each other as the longest of them leaves room for."""
    longest = max((len(line.name) for line in lines if not line.dashed), default=1)
    return max(1, min(4, (WIDTH - LEFT) // (24 + longest * LETTER)))


def _legend_height(chart: Chart) -> int:
    named = sum(not line.dashed for line in chart.lines)
    return 8 + 18 * -(-named // _legend_columns(chart.lines))


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">'
        f"{escape(text)}</text>"
    )


def _short(number: float) -> str:
    """`1.5k`, `20M`, `0.25`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
