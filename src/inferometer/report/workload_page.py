"""A page about a workload that was not run: lengths, who shares which prefix, and the best prefix-hit rate possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer import __version__
from inferometer.report.figures import clean, figure
from inferometer.report.html_page import render
from inferometer.report.workload_charts import section


def page(title: str, facts: Mapping[str, Any]) -> str:
    """One HTML file that needs no network. `facts`: `Account.facts` of workload/request_statistics.py."""
    about = section(facts["histograms"], facts, None, facts["prefix_hits"], None)
    context = {
        "title": clean(title),
        "version": clean(__version__),
        "lede": f"A workload of {figure(facts['requests'])} requests. Nothing was sent.",
        "workload": about,
    }
    return render("workload_page.html.j2", {"workload": about["data"]}, context)
