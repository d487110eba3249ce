// Draws the charts of report.html from the JSON element "data", and switches between light and dark.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const { series, marks, steady, pace, lateness_limit_ms: lateLimit } = JSON.parse(document.getElementById("data").textContent);
  const ink = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const charts = [];
  const font = (size) => `${size}px ${ink("--sans")}`;

  // Same convention as figures.py: four significant digits, thousands set apart from 10 000 on.
  const figure = (value, digits = 4) => {
    if (value == null || !Number.isFinite(value)) return "";
    if (Number.isInteger(value)) return value.toString().replace(/^(\d{2,})$/, group);
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
    const [whole, rest] = value.toFixed(Math.min(places, 12)).split(".");
    return group(whole) + (rest ? "." + rest : "");
  };
  const group = (whole) => (whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole);
  const tick = (value) => (value == null ? null : group(String(+value.toPrecision(6)).split(".")[0]) + (/\.\d+/.exec(String(+value.toPrecision(6))) || [""])[0]);

  const axis = (extra) => ({
    stroke: () => ink("--muted"),
    grid: { stroke: () => ink("--rule"), width: 1 },
    ticks: { show: false },
    font: font(12),
    labelFont: font(12),
    labelSize: 18,
    labelGap: 0,
    size: 24,
    gap: 4,
    values: (_, values) => values.map(tick),
    ...extra,
  });
  const left = (extra) => axis({ size: 58, ...extra });
  const line = (label, colour, extra) => ({
    label, colour, stroke: () => ink(colour), width: 1.5, points: { show: false }, value: (_, v) => figure(v), ...extra,
  });

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

  const draw = (id, height, data, options) => {
    const element = document.getElementById(id);
    if (!element) return;
    if (!data || !data[0] || data[0].length < 2) {
      const none = element.appendChild(document.createElement("div"));
      none.className = "none";
      none.textContent = data && data[0] && data[0].length ? "Too few points to draw" : "No data";
      return;
    }
    const wide = () => Math.max(element.clientWidth, 200);
    // A CSS variable keeps the legend's colours right when the theme changes.
    const legend = { markers: { stroke: (_, i) => `var(${options.series[i].colour})`, fill: () => "none" } };
    const u = new uPlot({ width: wide(), height, ms: 1, padding: [10, 8, 0, 0], legend, ...options }, data, element);
    if (options.series.length > 2) element.classList.add("several");
    charts.push({ u, height, wide, half: Boolean(element.closest(".pair")) });
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
    // Histogram and share have one axis. On it, if it is logarithmic, 1, 2 and 5 of each decade are named.
    const both = scale(xs.length ? xs : edges.length ? edges : [0, 1], at.p50);
    const ms = axis({ label: "ms", size: 22, filter: (u, splits) =>
      splits.map((v) => (u.scales.x.distr !== 3 || /^0?\.?0*[125]0*$/.test(String(+v.toPrecision(3))) ? v : null)) });
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
  };

  // Theme: ?theme= wins, then what the reader chose before, then the system.
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const redraw = () => { for (const { u } of charts) u.redraw(false, true); };
  const named = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const remembered = () => { try { return localStorage.getItem("inferometer-theme"); } catch { return null; } };
  const wanted = new URLSearchParams(location.search).get("theme") || remembered();
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("inferometer-theme", root.dataset.theme); } catch { /* file:// may forbid it */ }
    named();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { named(); redraw(); });
  named();
  drawAll();

  let due = 0;
  addEventListener("resize", () => {
    clearTimeout(due);
    due = setTimeout(() => { for (const c of charts) c.u.setSize({ width: c.wide(), height: c.height }); }, 80);
  });

  // Print: light colours, everything unfolded, and charts as wide as the sheet (A4 less margins is 688 px).
  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, folded: [...document.querySelectorAll("details:not([open])")] };
    root.dataset.theme = "light";
    for (const details of before.folded) details.open = true;
    for (const c of charts) c.u.setSize({ width: c.half ? 330 : 680, height: c.height });
    redraw();
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
    for (const details of before.folded) details.open = false;
    for (const c of charts) c.u.setSize({ width: c.wide(), height: c.height });
    redraw();
    before = null;
  });
})();
