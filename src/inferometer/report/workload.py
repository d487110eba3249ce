"""The workload in words, rows and charts: what was asked, sent and counted, and the prefixes that requests share.

| chart              | of                                                                   |
| ------------------ | -------------------------------------------------------------------- |
| lengths            | what was asked, sent and counted, in the same bins                   |
| requests a prefix  | a bar for each prefix, where there are at most MOST_BARS             |
| sharing            | a curve over the prefixes, the most used first, where there are more |
| prefix hits        | the best rate possible, and beside it what the server reports        |
"""

from __future__ import annotations

from dataclasses import dataclass

from inferometer import __version__
from inferometer.documents.results import Axis, Series
from inferometer.documents.summary import Summary
from inferometer.documents.workload import (
    Dataset,
    DrawnRequests,
    Lengths,
    PrefixHits,
    RequestStatistics,
    SharedPrefixes,
    TextSource,
    WorkloadAccount,
)
from inferometer.measure.lengths import Spread
from inferometer.measure.series import LengthHistograms
from inferometer.plan.length_histogram import LengthHistogram
from inferometer.report.charts import Chart
from inferometer.report.figures import ABSENT, UNKNOWN, Row, clean, figure, share
from inferometer.report.html_page import Picture, Table, picture, render_page, table

MOST_BARS = 12
_POINTS = ("mean", "p50", "p95", "p99", "max")
POINT_NAMES = ("Mean", "P50", "P95", "P99", "Max")
SETS = {
    "asked": "what the workload says each request should have",
    "sent": "tokens of the prompt as it was written, by the client's tokenizer",
    "counted": "by the server, its chat template included; of answers that it did not count, by the client",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a table: its share of the whole width, None where it is not known. `kind`: a class of the style sheet."""

    label: str
    value: str
    share: float | None
    kind: str


@dataclass(frozen=True, slots=True)
class WorkloadSection:
    """What a report shows of a workload. `sets`: the names of the histograms and their meaning; `lengths`: a label and the
    figures of POINT_NAMES each; `curve`: how uneven the sharing is, where there are too many prefixes for `bars`."""

    plots: tuple[Picture, ...]
    sets: list[Row]
    points: tuple[str, ...]
    lengths: list[tuple[str, list[str]]]
    bars: list[Bar]
    curve: Picture | None
    curve_words: str
    sharing: str
    hits: list[Bar]
    hits_words: str

    @property
    def table(self) -> Table:
        """The lengths as the table of a page."""
        rows = [[label, *cells] for label, cells in self.lengths]
        return table("Lengths", ["Lengths", *self.points], rows)


def section(
    lengths: LengthHistograms,
    drawn: RequestStatistics | None,
    counted: tuple[Spread | None, Spread | None] | None,
    best: PrefixHits | None,
    cached: float | None,
    *,
    sharing_known: bool = True,
) -> WorkloadSection:
    """The section.

    `drawn`: the account of the requests, None where none was taken. `counted`: statistics of the lengths counted in prompts
    and answers, None for a workload that was not run. `best`: the best possible prefix-hit rates, None where not known.
    `cached`: the share of prompt tokens that the server reports to have taken from a cache. `sharing_known`: whether it is
    known which requests share a prefix.
    """
    shared = drawn.shared if drawn and sharing_known else None
    curved = shared is not None and shared.curve and shared.curve[-1][0] > MOST_BARS
    ran = counted is not None
    return WorkloadSection(
        plots=(_lengths_plot("input", lengths.input_tokens), _lengths_plot("output", lengths.output_tokens)),
        sets=[(name, means) for name, means in SETS.items() if ran or name != "counted"],
        points=POINT_NAMES,
        lengths=length_rows(drawn, counted),
        bars=_bars(drawn, shared),
        curve=_curve(shared) if shared and curved else None,
        curve_words=_curve_words(shared) if shared and curved else "",
        sharing=_sharing(shared),
        hits=_hits(best, cached, ran=ran),
        hits_words=_hits_words(best),
    )


def of_run(summary: Summary, lengths: LengthHistograms) -> WorkloadSection:
    """The section of a run, from its summary and its histograms."""
    about, tokens = summary.workload, summary.tokens
    return section(
        lengths,
        about.drawn,
        (tokens.prompt.counted, tokens.output.counted),
        about.prefix_hits,
        summary.throughput.cached_input_share,
        sharing_known=about.prompts
        is None,  # what the prompts of a file have in common only their owner knows
    )


def page(title: str, drawn: DrawnRequests) -> str:
    """The page of a workload that was not run: one HTML file that needs no network."""
    lengths = LengthHistograms(**drawn.histograms)
    about = section(lengths, drawn, None, drawn.prefix_hits, None)
    context = {
        "title": clean(title),
        "version": clean(__version__),
        "lede": f"A workload of {figure(drawn.requests)} requests. Nothing was sent.",
        "workload": about,
    }
    return render_page("workload_page.html.j2", {}, context)


def length_rows(
    drawn: RequestStatistics | None, counted: tuple[Spread | None, Spread | None] | None
) -> list[tuple[str, list[str]]]:
    """Mean, percentiles and maximum of what was asked, sent and counted: a label and POINT_NAMES' figures each."""
    found: list[tuple[str, Lengths | Spread | None]] = []
    if drawn is not None:
        found += [("Input tokens asked", drawn.input_tokens), ("Input tokens sent", drawn.sent_tokens)]
    if counted is not None:
        found.append(("Input tokens counted", counted[0]))
    if drawn is not None:
        found.append(("Output tokens asked", drawn.output_tokens))
    if counted is not None:
        found.append(("Output tokens counted", counted[1]))
    return [(label, [figure(_point(stats, point)) for point in _POINTS]) for label, stats in found]


def _point(stats: Lengths | Spread | None, name: str) -> float | None:
    found: float | None = getattr(stats, name, None)
    return found


def _lengths_plot(side: str, histogram: LengthHistogram | None) -> Picture:
    """Lengths in their bins, with room at both ends so that the outlines begin and end on the axis."""
    title = f"Requests by {side} tokens"
    if histogram is None:
        return picture(Chart(title, "histogram", Axis(""), Axis(""), ()), "No lengths.")
    edges = histogram.edges
    low, high = (max(edges[0], 0.5), edges[-1]) if histogram.log else (edges[0], edges[-1])
    margin = (high / low) ** 0.03 if histogram.log else max((high - low) * 0.03, 0.7)
    within = (low / margin, high * margin) if histogram.log else (low - margin, high + margin)
    series = tuple(
        Series(f"{name}, {figure(sum(counts))} requests", (low, *edges[1:]), (*counts, 0))
        for name, counts in histogram.counts.items()
    )
    x = Axis("tokens", log=histogram.log)
    return picture(Chart(title, "histogram", x, Axis("requests"), series, height=250, within=within))


def _bars(drawn: RequestStatistics | None, shared: SharedPrefixes | None) -> list[Bar]:
    """A bar for each prefix, the most used first, and one for the requests without; none where a curve says it better."""
    groups = sorted((count for count in (shared and shared.groups) or () if count), reverse=True)
    if drawn is None or not groups or len(groups) > MOST_BARS:
        return []
    named = [(f"Prefix {place}", count, "ours") for place, count in enumerate(groups, 1)]
    named.append(("None", drawn.requests - sum(groups), "none"))
    return [
        Bar(label, f"{figure(count)}, {share(count / drawn.requests)}", count / drawn.requests, kind)
        for label, count, kind in named
    ]


def _curve(shared: SharedPrefixes) -> Picture:
    """% of the prefixes, the most used first, against the % of the sharing requests that carry one of them."""
    prefixes, requests = shared.curve[-1]
    x = tuple(100 * k / prefixes for k, _ in shared.curve)
    y = tuple(100 * carried / requests for _, carried in shared.curve)
    series = (Series("of the requests", x, y), Series("all alike", (0.0, 100.0), (0.0, 100.0)))
    axis = Axis("prefixes, the most used first", "%")
    title = "Sharing requests by prefix"
    return picture(
        Chart(title, "timeline", axis, Axis("requests", "%"), series, height=250, within=(0.0, 100.0))
    )


def _curve_words(shared: SharedPrefixes) -> str:
    points, (prefixes, requests) = shared.curve, shared.curve[-1]
    tenth = max(1, round(prefixes / 10))
    k, carried = min(points[1:], key=lambda point: abs(point[0] - tenth))
    return (
        f"The {figure(k)} most used of {figure(prefixes)} prefixes are in {share(carried / requests)} of the requests "
        f"that share one; if all were used alike, it would be {share(k / prefixes)}."
    )


def _sharing(shared: SharedPrefixes | None) -> str:
    if shared is None:
        return "Which requests share a prefix is not known of this workload."
    if not shared.requests:
        return "No request begins with a prefix that others were given too."
    prefixes = shared.curve[-1][0]
    which = "the same prefix" if prefixes == 1 else f"one of {figure(prefixes)} prefixes"
    return (
        f"{figure(shared.requests)} requests, {share(shared.fraction)} of all, begin with {which}, "
        f"{figure(_point(shared.tokens, 'mean'))} tokens long on average."
    )


def _hits(best: PrefixHits | None, cached: float | None, *, ran: bool) -> list[Bar]:
    """Bars of the best possible prefix-hit rates and of what the server reports; a rate that nobody knows has no bar."""
    best = best or PrefixHits(None, None, 16)
    rates = [
        ("Best possible, token by token", best.exact, "not known"),
        (f"Best possible, in blocks of {best.block_tokens} tokens", best.blocks, "not known"),
    ]
    if ran:
        rates.append(("Reported by the server", cached, "not reported"))
    return [
        Bar(
            label,
            otherwise if rate is None else share(rate),
            rate,
            "server" if label.startswith("Reported") else "ours",
        )
        for label, rate, otherwise in rates
    ]


def _hits_words(best: PrefixHits | None) -> str:
    if best is None or best.exact is None:
        return "The best possible rate was not worked out for this workload."
    return (
        "Share of all prompt tokens. Best possible: a cache without limit that is empty at the start and forgets "
        "nothing, without the tokens of the chat template, which a server counts and finds again too."
    )


_PUBLISHED_AS = {"mean": "mean", "p50": "P50", "p95": "P95", "p99": "P99"}


def disclosed_rows(about: WorkloadAccount) -> list[Row]:
    """Whose text was sent, the lengths drawn, who shared, and what a cache could find. `about`: the summary's `workload`."""
    texts, drawn = about.texts, about.drawn
    found: list[Row] = []
    if texts is not None:
        found.append(("Text", _text(texts)))
        found += [("Dataset", _dataset(texts.dataset))] if texts.dataset else []
    if drawn is not None:
        found.append(("Input tokens drawn", _drawn_input(drawn)))
        found.append(("Output tokens drawn", _figures(drawn.output_tokens)))
        found += [("Published and drawn", _published(drawn))] if drawn.published else []
        found += [("Shared prefixes drawn", _shared(drawn.shared))] if drawn.shared.requests else []
    found.append(("Best possible prefix hits", best_hits(about.prefix_hits)))
    return [*found, *_sequence(about)]


def _sequence(about: WorkloadAccount) -> list[Row]:
    """Which requests these were, to the byte: `inferometer workload verify` holds a file against it."""
    made = about.made
    found = [("Fingerprint of the requests", clean(about.fingerprint))] if about.fingerprint else []
    return [
        *found,
        *([("Workload file", f"{clean(made.file)}, digest {clean(made.digest)}")] if made else []),
    ]


def _text(texts: TextSource) -> str:
    corpus, dataset = texts.corpus, texts.dataset
    if dataset is not None:
        return f"of the dataset {clean(dataset.name)}"
    if corpus is None:
        return UNKNOWN
    return f"{clean(corpus.source)} (in the package, SHA-256 {clean(corpus.sha256)})"


def _dataset(dataset: Dataset) -> str:
    files = dataset.files
    which = f"subset {clean(dataset.subset)}" if dataset.subset else "all of it"
    left = ", ".join(f"{clean(why)} {figure(count)}" for why, count in dataset.left_out.items()) or "nothing"
    sampled = dataset.sampled
    kept = "all" if sampled == dataset.texts else f"a fixed random sample of {figure(sampled)}"
    version = clean(dataset.version or "not declared")
    return (
        f"{clean(dataset.name)}, version {version}, {which}, {figure(len(files))} files, "
        f"SHA-256 {clean(dataset.sha256)}; preprocessing: {clean(dataset.preprocessing)}; "
        f"{figure(dataset.rows)} rows, {figure(dataset.texts)} texts, of which {kept}; left out: {left}"
    )


def _shared(shared: SharedPrefixes) -> str:
    mean = figure(_point(shared.tokens, "mean"))
    return f"{share(shared.fraction)} of the requests, {mean} tokens on average"


def _drawn_input(drawn: RequestStatistics) -> str:
    unshared = _figures(drawn.unshared_input_tokens)
    if drawn.repeated_input_tokens is not None:
        return f"in all, with what turns repeat, {_figures(drawn.input_tokens)}; without that and shared prefixes {unshared}"
    if drawn.shared.requests == 0:
        return _figures(drawn.input_tokens)
    return f"in all {_figures(drawn.input_tokens)}; without the shared prefix {unshared}"


def _figures(of: Lengths | None) -> str:
    if of is None:
        return ABSENT
    points = ", ".join(
        f"{name.upper()} {figure(_point(of, name), trim=True)}" for name in ("p50", "p95", "p99")
    )
    return f"mean {figure(of.mean)}, {points}, {figure(of.min)} to {figure(of.max)}"


def _published(drawn: RequestStatistics) -> str:
    return "; ".join(
        f"{one.side} {_PUBLISHED_AS[one.figure]} {figure(one.published, trim=True)} ({clean(one.source)}), "
        f"drawn {figure(one.drawn, trim=True)}"
        for one in drawn.published
    )


def best_hits(hits: PrefixHits | None) -> str:
    """The share of prompt tokens that a cache without limit could have found."""
    if hits is None or hits.exact is None:
        return "not known"
    return (
        f"{share(hits.exact)} of the prompt tokens, {share(hits.blocks)} in whole blocks of "
        f"{figure(hits.block_tokens)}: a cache without limit that begins empty, without the chat template's tokens"
    )
