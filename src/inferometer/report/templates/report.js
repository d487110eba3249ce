// Draws what report.html alone has: distributions, the run over time, lateness.
(() => {
  "use strict";
  const { data, ink, figure, axis, left, line, logarithmic, draw } = Charts;
  const { series, marks, steady, pace, lateness_limit_ms: lateLimit } = data;

  // Vertical marks with a name, for percentiles; `at` is {p50: x, p99: x}. The names keep clear of each other and of the
  // curve: P50's on the left at the top; P99's on the right, at the bottom where the curve runs along the top.
  const verticals = (at, low) => (u) => {
    const { ctx, bbox } = u, ratio = uPlot.pxRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px ${ink("--sans")}`;
    for (const [name, value] of Object.entries(at)) {
      const x = Math.round(u.valToPos(value, "x", true)), first = name === "p50", room = 34 * ratio;
      if (!(x >= bbox.left && x <= bbox.left + bbox.width)) continue;
      const toLeft = first ? x - room > bbox.left : x + room > bbox.left + bbox.width;
      const atBottom = low && !first;
      ctx.strokeStyle = ctx.fillStyle = ink("--c2");
      ctx.lineWidth = ratio;
      ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
      ctx.textAlign = toLeft ? "right" : "left";
      ctx.textBaseline = atBottom ? "bottom" : "top";
      ctx.fillText(name.toUpperCase(), x + (toLeft ? -4 : 4) * ratio, atBottom ? bbox.top + bbox.height - 3 * ratio : bbox.top + 2 * ratio);
    }
    ctx.restore();
  };
  const horizontal = (value, name) => (u) => {
    const { ctx, bbox } = u, ratio = uPlot.pxRatio, y = Math.round(u.valToPos(value, "y", true));
    if (value == null || y < bbox.top || y > bbox.top + bbox.height) return;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink("--c2");
    ctx.font = `${11 * ratio}px ${ink("--sans")}`;
    ctx.textBaseline = "bottom"; ctx.textAlign = "right"; ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 3 * ratio]);
    ctx.beginPath(); ctx.moveTo(bbox.left, y); ctx.lineTo(bbox.left + bbox.width, y); ctx.stroke();
    ctx.fillText(name, bbox.left + bbox.width - 2 * ratio, y - 2 * ratio);
    ctx.restore();
  };
  const shade = (u) => {
    if (steady[0] == null || steady[1] == null) return;
    const { ctx, bbox } = u, end = bbox.left + bbox.width;
    const from = Math.max(u.valToPos(steady[0], "x", true), bbox.left), to = Math.min(u.valToPos(steady[1], "x", true), end);
    ctx.save();
    ctx.fillStyle = ink("--shade");
    if (to > from) ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.restore();
  };

  // A tail far beyond the median would press all else against the axis: such a distribution is drawn on a log axis.
  const scale = (xs, middle) => {
    const last = xs[xs.length - 1], log = middle > 0 && last > 5 * middle;
    // Zero has no place on a log axis; whatever lies far below the median starts at its edge.
    const first = log ? Math.max(xs.find((x) => x > 0), middle / 10) : xs[0];
    return { time: false, distr: log ? 3 : 1, range: () => [log ? first : Math.min(first, last - 1e-9), last] };
  };
  const distribution = (name, prefix) => {
    const found = series[name] || {}, at = marks[name] || {};
    const edges = found.hist?.edges || [], counts = found.hist?.counts || [], xs = found.cdf?.x || [];
    // Histogram and share have one axis.
    const both = scale(xs.length ? xs : edges.length ? edges : [0, 1], at.p50);
    const ms = axis({ label: "ms", size: 22, ...(both.distr === 3 ? logarithmic : {}) });
    draw(`${prefix}-hist`, 210, edges.length ? [edges, [...counts, counts[counts.length - 1]]] : null, {
      scales: { x: both, y: { range: (_, low, high) => [0, high * 1.2 || 1] } },
      axes: [ms, left()],
      series: [{ label: "from ms", value: (_, v) => figure(v) },
        line("count", "--c1", { fill: () => ink("--c1-fill"), paths: uPlot.paths.stepped({ align: 1 }) })],
      hooks: { draw: [verticals(at, false)] },
    });
    draw(`${prefix}-cdf`, 210, xs.length ? [xs, found.cdf.p.map((p) => p * 100)] : null, {
      scales: { x: both, y: { range: [0, 100] } },
      axes: [ms, left({ values: (_, values) => values.map((v) => v + "\u202f%") })],
      series: [{ label: "ms", value: (_, v) => figure(v) }, line("share %", "--c1")],
      hooks: { draw: [verticals(at, true)] },
    });
  };

  // Every chart over time has the same span, so that they can be read downwards.
  const timeline = series.timeline || {}, t = timeline.t_s || [], late = series.lateness || { t_s: [], ms: [] };
  const ends = [t[0], t[t.length - 1], late.t_s[0], late.t_s[late.t_s.length - 1]].filter((v) => v != null);
  const span = { time: false, range: () => [Math.min(0, ...ends), Math.max(...ends)] };
  const overTime = (id, height, names, last = false, range = undefined, incrs = undefined) =>
    draw(id, height, t.length ? [t, ...names.map(([, values]) => values || [])] : null, {
      cursor: { sync: { key: "time" } },
      scales: { x: span, y: { range: range || ((_, low, high) => [0, high * 1.08 || 1]) } },
      axes: [axis(last ? { label: "seconds", size: 22 } : {}), left(incrs ? { incrs } : {})],
      series: [{ label: "s", value: (_, v) => figure(v) }, ...names.map(([label, , colour, extra]) => line(label, colour, extra))],
      hooks: { drawClear: [shade] },
    });

  // Of the server's own metrics there is only what it shows, each at the instants of its scrapes.
  const server = series.server || {};
  const shown = [["running", "server-running", "--c1", 1], ["waiting", "server-waiting", "--c2", 1], ["kv_usage", "server-kv", "--c1", 100],
    ["generation_tok_s", "server-tokens", "--c1", 1], ["prefix_hit_share", "server-hits", "--c1", 100]].filter(([name]) => server[name]);
  const ofServer = ([name, id, colour, factor], place) => {
    const { t_s: at, values } = server[name], inside = (_, k) => at[k] >= span.range()[0] && at[k] <= span.range()[1];
    const drawn = values.map((v) => v * factor);
    draw(id, 130, at.filter(inside).length > 1 ? [at.filter(inside), drawn.filter(inside)] : [[]], {
      cursor: { sync: { key: "time" } },
      scales: { x: span, y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [axis(place === shown.length - 1 ? { label: "seconds", size: 22 } : {}), left()],
      series: [{ label: "s", value: (_, v) => figure(v) }, line(factor === 100 ? "%" : name === "generation_tok_s" ? "tok/s" : "requests", colour)],
      hooks: { drawClear: [shade] },
    });
  };

  const drawAll = () => {
    distribution("ttft_ms", "ttft");
    distribution(pace, "pace");
    overTime("time-tokens", 150, [["tok/s", timeline.output_tok_s, "--c1", { fill: () => ink("--c1-fill") }]]);
    overTime("time-flight", 130, [["in flight", timeline.in_flight, "--c1"]]);
    overTime("time-ttft", 150, [["P50", timeline.ttft_p50_ms, "--c1", { spanGaps: true }], ["P99", timeline.ttft_p99_ms, "--c2", { spanGaps: true }]]);
    overTime("time-errors", 110, [["errors", timeline.errors, "--c2", { fill: () => ink("--c2"), paths: uPlot.paths.bars({ size: [0.8, 6] }) }]],
      true, (_, low, high) => [0, Math.max(high * 1.1, 1)], [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1e4, 1e5]);
    draw("lateness", 170, late.t_s.length ? [late.t_s, late.ms] : null, {
      cursor: { sync: { key: "time" } },
      scales: { x: span, y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high * 1.1, 1e-3)] } },
      axes: [axis({ label: "seconds", size: 22 }), left()],
      series: [{ label: "s", value: (_, v) => figure(v) },
        line("late by ms", "--c1", { paths: () => null, points: { show: true, size: 3, width: 0, fill: () => ink("--c1") } })],
      hooks: { drawClear: [shade], draw: [horizontal(lateLimit, "limit for P99")] },
    });
    shown.forEach(ofServer);
  };

  drawAll();
})();
