"""A comparison as one HTML page: everything is in it, and it fetches nothing."""

from collections.abc import Iterable, Sequence
from html import escape

from muster.simulator.charts import charts_of
from muster.simulator.figures import FigureRow, figure_lines
from muster.simulator.report import QueueReport, Report
from muster.simulator.svg import svg_of

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; }
table { border-collapse: collapse; margin: 1rem 0 2rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: bold; }
figure { margin: 1.5rem 0; }
figure svg { width: 100%; height: auto; max-width: 860px; }
small { opacity: .75; }
"""


def page_of(reports: Sequence[Report], *, title: str) -> str:
    """The page, as text."""
    charts = "\n".join(f"<figure>{svg_of(chart)}</figure>" for chart in charts_of(reports))
    queues = "\n".join(_queue_table(report) for report in reports if len(report.queues) > 1)
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style></head>
<body>
<h1>{escape(title)}</h1>
<p>The same jobs under each set of rules, run through the real controller in pretend time.
The best figure of each line is bold.</p>
{_table([report.name for report in reports], figure_lines(reports))}
{charts}
{queues}
<p><small>JCT: from submission to end. Slowdown: JCT by the time that the job needs.
Fragmented: GPU that is free where no usual task fits. Served: GPU-hours by what the queue's weight
and guarantee give it while it has work. rho: JCT by what it would be if all who want GPUs shared
them equally.</small></p>
</body>
</html>
"""


def _table(names: Iterable[str], rows: Iterable[FigureRow]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "\n".join(
        f"<tr><td>{escape(row.title)}</td>{''.join(map(_cell, row.cells, row.best))}</tr>"
        for row in rows
    )
    return f"<table><tr><th></th>{head}</tr>\n{body}</table>"


def _cell(text: str, is_best: bool) -> str:  # noqa: FBT001  called by map
    return f'<td class="best">{escape(text)}</td>' if is_best else f"<td>{escape(text)}</td>"


def _queue_table(report: Report) -> str:
    titles = "queue,weight,jobs,GPU-hours,entitled,served,mean wait (s),mean JCT (s)".split(",")
    head = "".join(f"<th>{each}</th>" for each in titles)
    body = "\n".join(f"<tr>{''.join(_queue_cells(each))}</tr>" for each in report.queues)
    return f"<h2>Queues: {escape(report.name)}</h2><table><tr>{head}</tr>\n{body}</table>"


def _queue_cells(each: QueueReport) -> Iterable[str]:
    yield f"<td>{escape(each.path)}</td>"
    for text in (
        str(each.weight),
        f"{each.jct_s.count:,}",
        f"{each.gpu_hours:,.1f}",
        f"{each.entitled_gpu_hours:,.1f}",
        f"{each.served:.2f}",
        f"{each.wait_s.mean:,.0f}",
        f"{each.jct_s.mean:,.0f}",
    ):
        yield f"<td>{text}</td>"
