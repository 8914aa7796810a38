"""Plots of the ledger as SVG (for the page) and PDF (for the appendix), the same bytes on every run."""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing

STYLE = {
    "svg.hashsalt": "two-heads-verify",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
}
"""Fixed salts and fonts, so that nothing depends on the machine."""

MARKERS = "osv^Dx+*"
WIDTH, HEIGHT = 5.4, 2.4
"""Inches: the text width of an article, and the height of a plot of curves."""


def render_figures(ledger: dict[str, Any]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The PDF files by file name, and the SVG text of each figure by its name."""
    files: dict[str, bytes] = {}
    pictures: dict[str, str] = {}
    with matplotlib.rc_context(STYLE):  # type: ignore[arg-type]
        for figure in ledger["figures"]:
            drawing = _draw(figure)
            pdf, svg = io.BytesIO(), io.StringIO()
            FigureCanvasPdf(drawing).print_pdf(pdf, metadata={"CreationDate": None, "Producer": None, "Creator": None})  # type: ignore[no-untyped-call]
            FigureCanvasSVG(drawing).print_svg(svg, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
            files[f"appendix/{file_name(figure)}"] = pdf.getvalue()
            text = svg.getvalue()
            pictures[figure["name"]] = text
    return files, pictures


def file_name(figure: dict[str, Any]) -> str:
    """The PDF's name beside the LaTeX fragments."""
    return f"figure-{figure['name'].replace(' ', '-')}.pdf"


def picture_name(figure: dict[str, Any]) -> str:
    """The SVG's name beside the pages."""
    return file_name(figure).replace(".pdf", ".svg")


def _draw(figure: dict[str, Any]) -> Drawing:
    bars = sum(len(panel) for panel in figure["panels"].values()) if figure["bars"] else 0
    height = 0.17 * bars + 0.45 * len(figure["panels"]) + 0.3 if bars else HEIGHT
    drawing = Drawing(figsize=(WIDTH, height), layout="constrained")
    if figure["bars"]:
        _draw_bars(drawing, figure)
    else:
        _draw_curves(drawing, figure)
    return drawing


def _draw_bars(drawing: Drawing, figure: dict[str, Any]) -> None:
    """One panel below the other, so that long labels have room."""
    panels = figure["panels"]
    rows = [len(bars) for bars in panels.values()]
    axes = drawing.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": rows})[:, 0]
    for axis, (title, bars) in zip(axes, panels.items(), strict=True):
        lengths = [points[0][1] for points in bars.values()]
        axis.barh(list(bars), lengths)
        for place, length in enumerate(lengths):
            axis.annotate(
                f"{length:g}", (length, place), xytext=(2, 0), textcoords="offset points", va="center", fontsize=7
            )
        axis.invert_yaxis()
        axis.set_title(title, fontsize=8, loc="left")
    axes[-1].set_xlabel(figure["x"])


def _draw_curves(drawing: Drawing, figure: dict[str, Any]) -> None:
    panels = figure["panels"]
    axes = drawing.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for marker, (label, points) in zip(MARKERS, curves.items(), strict=False):
            axis.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=label)
        axis.set_title(title, fontsize=8)
        axis.set_xlabel(figure["x"])
        axis.grid(alpha=0.3, linewidth=0.5)
    axes[0].set_ylabel(figure["y"])
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 3), frameon=False, fontsize=7)
