"""What the requests were made of, and what was drawn, for Markdown and HTML alike: beside draft 4.3.1's items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inferometer.report.figures import ABSENT, clean, figure, share

Row = tuple[str, str]
Facts = Mapping[str, Any]

_PUBLISHED_AS = {"mean": "mean", "p50": "P50", "p95": "P95", "p99": "P99"}


def rows(about: Facts) -> list[Row]:
    """Whose text was sent, the lengths drawn, who shared, and what a cache could find. `about`: the summary's `workload`."""
    texts, drawn = about["texts"], about["drawn"]
    found: list[Row] = []
    if texts is not None:
        found.append(("Text", _text(texts)))
        found += [("Dataset", _dataset(texts["dataset"]))] if texts["dataset"] else []
    if drawn is not None:
        found.append(("Input tokens drawn", _drawn_input(drawn)))
        found.append(("Output tokens drawn", _figures(drawn["output_tokens"])))
        found += [("Published and drawn", _published(drawn))] if drawn["published"] else []
        found += [("Shared prefixes drawn", _shared(drawn["shared"]))] if drawn["shared"]["requests"] else []
    found.append(("Best possible prefix hits", best_hits(about["prefix_hits"])))
    return [*found, *_sequence(about)]


def _sequence(about: Facts) -> list[Row]:
    """Which requests these were, to the byte: `inferometer workload verify` holds a file against it."""
    made = about.get("made")
    found = [("Fingerprint of the requests", clean(about["fingerprint"]))] if about.get("fingerprint") else []
    return [
        *found,
        *([("Workload file", f"{clean(made['file'])}, digest {clean(made['digest'])}")] if made else []),
    ]


def _text(texts: Facts) -> str:
    corpus, dataset = texts["corpus"], texts["dataset"]
    if dataset is not None:
        return f"of the dataset {clean(dataset['name'])}"
    return f"{clean(corpus['source'])} (in the package, SHA-256 {clean(corpus['sha256'])})"


def _dataset(dataset: Facts) -> str:
    files = dataset["files"]
    which = f"subset {clean(dataset['subset'])}" if dataset["subset"] else "all of it"
    left = (
        ", ".join(f"{clean(why)} {figure(count)}" for why, count in dataset["left_out"].items()) or "nothing"
    )
    sampled = dataset["sampled"]
    kept = "all" if sampled == dataset["texts"] else f"a fixed random sample of {figure(sampled)}"
    version = clean(dataset["version"] or "not declared")
    return (
        f"{clean(dataset['name'])}, version {version}, {which}, {figure(len(files))} files, "
        f"SHA-256 {clean(dataset['sha256'])}; preprocessing: {clean(dataset['preprocessing'])}; "
        f"{figure(dataset['rows'])} rows, {figure(dataset['texts'])} texts, of which {kept}; left out: {left}"
    )


def _shared(shared: Facts) -> str:
    return (
        f"{share(shared['fraction'])} of the requests, {figure(shared['tokens']['mean'])} tokens on average"
    )


def _drawn_input(drawn: Facts) -> str:
    unshared = _figures(drawn["unshared_input_tokens"])
    if drawn["repeated_input_tokens"] is not None:
        return f"in all, with what turns repeat, {_figures(drawn['input_tokens'])}; without that and shared prefixes {unshared}"
    if drawn["shared"]["requests"] == 0:
        return _figures(drawn["input_tokens"])
    return f"in all {_figures(drawn['input_tokens'])}; without the shared prefix {unshared}"


def _figures(of: Facts | None) -> str:
    if of is None:
        return ABSENT
    points = ", ".join(f"{name.upper()} {figure(of[name], trim=True)}" for name in ("p50", "p95", "p99"))
    return f"mean {figure(of['mean'])}, {points}, {figure(of['min'])} to {figure(of['max'])}"


def _published(drawn: Facts) -> str:
    return "; ".join(
        f"{one['side']} {_PUBLISHED_AS[one['figure']]} {figure(one['published'], trim=True)} ({clean(one['source'])}), "
        f"drawn {figure(one['drawn'], trim=True)}"
        for one in drawn["published"]
    )


def best_hits(hits: Facts | None) -> str:
    """The share of prompt tokens that a cache without limit could have found."""
    if hits is None or hits["exact"] is None:
        return "not known"
    return (
        f"{share(hits['exact'])} of the prompt tokens, {share(hits['blocks'])} in whole blocks of "
        f"{figure(hits['block_tokens'])}: a cache without limit that begins empty, without the chat template's tokens"
    )
