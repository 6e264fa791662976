"use strict";
(async () => {
  const copy = async (text, status) => {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = "copied";
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      status.textContent = document.execCommand("copy") ? "copied" : "not copied: the browser does not allow it";
      area.remove();
    }
  };
  for (const each of document.querySelectorAll(".copies")) {
    const block = each.closest(".command");
    each.hidden = false;
    each.addEventListener("click", () =>
      copy(block.querySelector("pre").textContent, block.querySelector("[role=status]")));
  }
  // The page contains its data as deflated JSON. A browser that cannot inflate shows static SVG.
  if (!window.DecompressionStream) return;
  const island = (id) => {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };
  const charts = await island("charts");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const plots = [];

  const short = (value) => {
    const size = Math.abs(value);
    for (const [power, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])
      if (size >= power) return +(value / (letter === "k" ? 1e3 : power)).toPrecision(4) + letter;
    return String(+value.toPrecision(size >= 1000 ? 6 : 3));
  };
  const shown = (axis) => (_, value) =>
    value == null ? "\u2013" : short(value) + (axis.unit ? "\u202f" + axis.unit : "");

  // Values in the unit of the axis; values that a logarithmic axis cannot show become null.
  const scaled = (values, axis) =>
    values.map((v) => (v == null || (axis.log && v <= 0) ? null : v / axis.per));

  function table(chart) {
    const sums = [];
    const tables = chart.lines.map((line) => {
      const x = scaled(apart(chart.xs[line.x], line), chart.x);
      line.at = new Map(x.map((v, i) => [v, i]));
      let y = line.y;
      if (chart.is_stacked) {
        y = y.map((v, i) => (sums[i] = v == null || sums[i] === null ? null : v + (sums[i] || 0)));
      }
      return [x, scaled(y, chart.y)];
    });
    return uPlot.join(tables);
  }

  // uPlot needs unique x values: equal ones are shifted by an invisible distance.
  function apart(values, line) {
    const seen = new Set();
    if (line.style !== "points") return values;
    return values.map((v) => {
      while (seen.has(v)) v += (Math.abs(v) || 1) * 1e-9;
      seen.add(v);
      return v;
    });
  }

  function series(line, chart) {
    const colour = css("--c" + line.colour);
    const area = line.style === "area";
    const dots = line.style === "points" || line.style === "both";
    return {
      label: line.label,
      stroke: colour,
      width: line.style === "points" ? 0 : 1.8,
      fill: area ? colour + (chart.is_stacked ? "c0" : "30") : undefined,
      dash: line.dashed ? [6, 4] : undefined,
      paths: line.style === "steps" ? uPlot.paths.stepped({ align: 1 })
        : line.style === "points" ? () => null : undefined,
      points: { show: dots, size: 7, fill: colour },
      // The value of the line itself; in a stack not the sum.
      value: (u, v, s, i) => {
        const at = i == null ? null : line.at.get(u.data[0][i]);
        if (at == null) return shown(chart.y)(u, null);
        const own = line.y[at] == null ? null : line.y[at] / chart.y.per;
        return (line.names[at] ? line.names[at] + ": " : "") + shown(chart.y)(u, own);
      },
    };
  }

  // The intervals of lines and marks, below both.
  function intervals(u, chart) {
    const { left, top, width, height } = u.bbox, { ctx } = u;
    const x = (v) => u.valToPos(v / chart.x.per, "x", true);
    const y = (v) => u.valToPos(Math.max(v / chart.y.per, chart.y.log ? u.scales.y.min : -Infinity), "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    ctx.globalAlpha = 0.18;
    for (const line of chart.lines) {
      ctx.fillStyle = css("--c" + line.colour);
      const at = chart.xs[line.x];
      let part = [];
      const close = () => {
        if (part.length > 1) {
          ctx.beginPath();
          for (const i of part) ctx.lineTo(x(at[i]), y(line.low[i]));
          for (const i of part.reverse()) ctx.lineTo(x(at[i]), y(line.high[i]));
          ctx.fill();
        }
        part = [];
      };
      line.low.forEach((low, i) => { if (low == null || line.high[i] == null) close(); else part.push(i); });
      close();
    }
    ctx.fillStyle = css("--c" + chart.interval);
    for (const mark of chart.marks)
      if (mark.low != null && mark.high != null)
        ctx.fillRect(x(mark.low), top, x(mark.high) - x(mark.low), height);
    ctx.restore();
  }

  // Bands are drawn below the lines, marks above them.
  function bands(u, chart) {
    const { left, top, width, height } = u.bbox, { ctx } = u, dense = devicePixelRatio;
    const at = (v) => Math.min(Math.max(u.valToPos(v / chart.x.per, "x", true), left), left + width);
    ctx.save();
    ctx.font = 11 * dense + "px system-ui, sans-serif";
    ctx.textAlign = "left"; // uPlot may have changed it for an axis
    ctx.textBaseline = "alphabetic";
    chart.bands.forEach((band, i) => {
      const start = at(band.start), end = at(band.end);
      ctx.fillStyle = css("--band");
      if (i % 2) ctx.fillRect(start, top, end - start, height);
      ctx.fillStyle = css("--soft");
      const wide = ctx.measureText(band.label).width + 8 * dense;
      const line = chart.marks.find((m) => m.y == null && at(m.x) >= start && at(m.x) < start + wide);
      if (end - start > wide)
        ctx.fillText(band.label, (line ? at(line.x) : start) + 5 * dense, top + 13 * dense);
    });
    ctx.restore();
  }
  function marks(u, chart) {
    const { left, top, width, height } = u.bbox, { ctx } = u, dense = devicePixelRatio;
    ctx.save();
    ctx.font = 11 * dense + "px system-ui, sans-serif";
    ctx.textBaseline = "alphabetic";
    ctx.strokeStyle = ctx.fillStyle = css("--ink");
    ctx.lineWidth = dense;
    for (const mark of chart.marks) {
      const x = u.valToPos(mark.x / chart.x.per, "x", true);
      if (x < left - 1 || x > left + width + 1) continue;
      let y = top + (27 + 13 * mark.row) * dense;
      ctx.beginPath();
      if (mark.y == null) {
        ctx.setLineDash([3 * dense, 3 * dense]);
        ctx.moveTo(x, top);
        ctx.lineTo(x, top + height);
      } else {
        y = u.valToPos(mark.y / chart.y.per, "y", true);
        ctx.setLineDash([]);
        ctx.arc(x, y, 6 * dense, 0, 7);
        y -= 9 * dense;
      }
      ctx.stroke();
      const right = x + ctx.measureText(mark.label).width + 8 * dense > left + width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(mark.label, x + (right ? -8 : 8) * dense, Math.max(y, top + 11 * dense));
    }
    ctx.restore();
  }

  function scale(axis, pad, ends = []) { // an axis shows the `ends` of intervals too
    const low = axis.low == null ? null : axis.low / axis.per;
    const high = axis.high == null ? null : axis.high / axis.per;
    return {
      time: false,
      distr: axis.log ? 3 : 1,
      log: axis.base,
      range: (u, min, max) => {
        const x = u.data[0];
        if (!pad && (min !== x[0] || max !== x[x.length - 1])) return [min, max]; // zoomed in
        if (min == null) return [low ?? (axis.log ? 1 : 0), high ?? (axis.log ? 10 : 1)];
        if (ends.length) [min, max] = [Math.min(min, ...ends), Math.max(max, ...ends)];
        if (axis.log) return uPlot.rangeLog(min, max, axis.base, false);
        const bottom = low ?? min, top = high ?? max;
        return [bottom, top > bottom ? (high == null && pad ? top + (top - bottom) * 0.05 : top) : bottom + 1];
      },
    };
  }

  function axis(from, side) {
    return {
      label: from.title,
      labelSize: 20,
      labelGap: 0,
      labelFont: "12px system-ui, sans-serif",
      font: "11px system-ui, sans-serif",
      size: side === "y" ? 52 : 34,
      stroke: css("--soft"),
      grid: { stroke: css("--rule"), width: 0.6 },
      ticks: { stroke: css("--rule"), width: 0.6, size: 5 },
      values: (u, values) => values.map((v) => (v == null ? null : short(v))),
    };
  }

  function draw(chart, figure) {
    const place = figure.querySelector(".plot");
    const width = figure.clientWidth;
    const ends = chart.lines.flatMap((line) =>
      scaled([...line.low, ...line.high], chart.y).filter((v) => v != null));
    const options = {
      width,
      height: Math.round(Math.min(Math.max(width * 0.36, 190), 290)),
      scales: { x: scale(chart.x, false), y: scale(chart.y, true, ends) },
      axes: [axis(chart.x, "x"), axis(chart.y, "y")],
      series: [{ label: chart.x.label, value: shown(chart.x) },
        ...chart.lines.map((line) => series(line, chart))],
      bands: chart.is_stacked
        ? chart.lines.slice(1).map((_, i) => ({ series: [i + 2, i + 1] })) : undefined,
      cursor: { sync: chart.sync ? { key: chart.sync, scales: ["x", null] } : undefined,
        drag: { x: true, y: false }, points: { size: 6 } },
      legend: { live: true },
      hooks: {
        drawClear: [(u) => bands(u, chart), (u) => intervals(u, chart)],
        draw: [(u) => marks(u, chart)],
        // The legend shows values only while the pointer is over a chart.
        setLegend: [(u) => u.root.classList.toggle("pointed", u.cursor.idx != null)],
      },
    };
    plots.push(new uPlot(options, table(chart), place));
    figure.classList.add("drawn");
  }

  function drawAll() {
    while (plots.length) plots.pop().destroy();
    for (const chart of charts) draw(chart, document.getElementById("chart-" + chart.gid));
    document.documentElement.dataset.drawn = plots.length;
  }

  let wide = innerWidth;
  let later = 0;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    clearTimeout(later);
    later = setTimeout(drawAll, 120);
  });
  dark.addEventListener("change", drawAll);
  drawAll();

  const button = document.getElementById("copy");
  if (button && document.getElementById("result")) {
    const result = await island("result"); // loaded in advance: a browser allows the clipboard only right after a click
    button.hidden = false;
    button.addEventListener("click", () =>
      copy(JSON.stringify(result, null, 2) + "\n", document.getElementById("copied")));
  }
})();
