// Draws a workload: histograms of lengths laid over each other, and how evenly prefixes are shared.
(() => {
  "use strict";
  const { data, ink, figure, axis, left, line, logarithmic, draw } = Charts;
  const { lengths, curve } = data.workload;
  const LOOKS = {
    asked: ["--c1", { width: 0, fill: () => ink("--c1-wash"), wash: "--c1-wash" }],
    sent: ["--c1", { width: 1.5 }],
    counted: ["--c2", { width: 1.75, dash: [5, 3] }],
  };

  const WHOLE = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power)).flat();

  // The edges of the bins with an empty one at either end, so that the outline begins and ends on the axis.
  const histogram = (id, found) => {
    const { edges, counts, log } = found || { edges: [], counts: {}, log: false };
    const first = log ? Math.max(edges[0], 0.5) : edges[0], last = edges[edges.length - 1];
    const room = log ? (last / first) ** 0.03 : Math.max((last - first) * 0.03, 0.7);
    const before = log ? first / room : Math.max(first - room, Math.min(first, 0)), after = log ? last * room : last + room;
    const xs = [before, first, ...edges.slice(1), after], names = Object.keys(counts);
    const paths = uPlot.paths.stepped({ align: 1 });
    draw(id, 210, found ? [xs, ...names.map((name) => [0, ...counts[name], 0, 0])] : null, {
      scales: { x: { time: false, distr: log ? 3 : 1, range: () => [before, after] }, y: { range: (_, low, high) => [0, high * 1.2 || 1] } },
      axes: [axis({ label: "tokens", size: 22, ...(log ? logarithmic : { incrs: WHOLE }) }), left()],
      series: [{ label: "from tokens", value: (_, v) => figure(v) },
        ...names.map((name) => { const [colour, extra] = LOOKS[name]; return line(name, colour, { paths, ...extra }); })],
    });
  };
  histogram("input-tokens", lengths.input_tokens);
  histogram("output-tokens", lengths.output_tokens);

  if (curve) {
    const [prefixes, requests] = curve, percent = (_, values) => values.map((v) => `${v}\u202f%`);
    draw("sharing", 210, [prefixes, requests, prefixes], {
      padding: [10, 18, 0, 0],
      scales: { x: { time: false, range: [0, 100] }, y: { range: [0, 100] } },
      axes: [axis({ label: "of the prefixes, the most used first", size: 22, values: percent }), left({ values: percent })],
      series: [{ label: "prefixes %", value: (_, v) => figure(v) },
        line("of the requests %", "--c1", { fill: () => ink("--c1-fill") }), line("all alike", "--muted", { width: 1, dash: [4, 3] })],
    });
  }
})();
