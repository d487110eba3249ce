// What every chart shares: figures, axes, lines, and all that happens to a chart later: light and dark, another width, print.
// The data of a page is the JSON in its element "data".
const Charts = (() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const data = JSON.parse(document.getElementById("data").textContent);
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

  // A logarithmic axis has a line at 1 to 9 of each decade, wherever it begins, and names 1, 2 and 5, or over a wide range 1.
  const decades = (u, index, low, high) => {
    const found = [];
    for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10)
      for (let n = 1; n < 10; n++) if (n * ten >= low && n * ten <= high) found.push(n * ten);
    return found;
  };
  const named = (u, splits) => {
    const wide = splits[splits.length - 1] / splits[0] > 3000;
    return splits.map((v) => ((wide ? /^[0.]*10*$/ : /^[0.]*[125]0*$/).test(String(+v.toPrecision(3))) ? v : null));
  };
  const logarithmic = { splits: decades, filter: named };

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
    const look = (i) => options.series[i];
    const legend = { markers: {
      stroke: (_, i) => `var(${look(i).wash || look(i).colour})`, fill: (_, i) => (look(i).wash ? `var(${look(i).wash})` : "none"),
      dash: (_, i) => (look(i).dash ? "dashed" : "solid"),
    } };
    const u = new uPlot({ width: wide(), height, ms: 1, padding: [10, 8, 0, 0], legend, ...options }, data, element);
    if (options.series.length > 2) element.classList.add("several");
    charts.push({ u, height, wide, half: Boolean(element.closest(".pair")) });
  };

  // Theme: ?theme= wins, then what the reader chose before, then the system.
  const button = document.getElementById("theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const redraw = () => { for (const { u } of charts) u.redraw(false, true); };
  const nameButton = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const remembered = () => { try { return localStorage.getItem("inferometer-theme"); } catch { return null; } };
  const wanted = new URLSearchParams(location.search).get("theme") || remembered();
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("inferometer-theme", root.dataset.theme); } catch { /* file:// may forbid it */ }
    nameButton();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { nameButton(); redraw(); });
  nameButton();

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
  return { data, ink, figure, axis, left, line, logarithmic, draw };
})();
