"use strict";
(async () => {
  // The page holds the replays and the parameters of the surfaces; it computes the rest itself.
  const byId = (id) => document.getElementById(id);
  if (!window.DecompressionStream) {
    byId("old").hidden = false;
    return;
  }
  const packed = Uint8Array.from(atob(byId("result").textContent), (c) => c.charCodeAt(0));
  const doc = await new Response(
    new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  const { axes, quantities, replays, rule, near } = doc, PROBABLE = byId("verdict").dataset;
  const numberOf = Object.fromEntries(quantities.map((each, n) => [each.name, n]));
  const axisOf = Object.fromEntries(axes.map((each, n) => [each.name, n]));
  const [CACHE, SIZE, SSD, MEMBERS, LOAD] = ["cache", "size", "ssd", "members", "load"].map((name) => axisOf[name]);

  // ---- The surfaces: the same as in hybridsim/studies/explore/surface.py.

  // One column for each ordered axis that varies, one for each word.
  const ordered = [], words = [];
  axes.forEach((axis, number) => {
    const { choices } = axis;
    if (choices.length < 2) return;
    if (axis.is_ordered) {
      const low = choices[0].at, high = choices[choices.length - 1].at;
      ordered.push([number, choices.map((each) => (each.at - low) / (high - low))]);
      const [least, most] = [choices[0], choices[choices.length - 1]].map((each) => each.served ?? 0);
      if (most > least) ordered.push([number, choices.map((each) => (each.served - least) / (most - least))]);
    } else {
      const columns = axis.name === "cache"
        ? choices[0].words.map((_, w) => choices.map((each) => each.words[w]))
        : [choices.map((each) => each.name)];
      for (const column of columns)
        if (new Set(column).size > 1) words.push([number, column]);
    }
  });
  const columnsOf = (place) => [
    ...ordered.map(([axis, at]) => at[place[axis]]), ...words.map(([axis, word]) => word[place[axis]])];
  const columns = replays.map((each) => columnsOf(each.place));
  const ROOT3 = Math.sqrt(3);

  function alike(one, other, scales) {
    let factor = 1, exponent = 0;
    for (let i = 0; i < ordered.length; i++) {
      const far = ROOT3 * Math.abs(one[i] - other[i]) / scales[i];
      factor *= 1 + far;
      exponent += far;
    }
    for (let i = ordered.length; i < one.length; i++) if (one[i] !== other[i]) exponent += scales[i];
    return factor * Math.exp(-exponent);
  }

  // The inverse of the Cholesky factor of a symmetric positive definite matrix, by rows.
  function halfInverse(matrix, n) {
    const lower = matrix;
    for (let j = 0; j < n; j++) {
      for (let i = j; i < n; i++) {
        let sum = lower[i * n + j];
        for (let k = 0; k < j; k++) sum -= lower[i * n + k] * lower[j * n + k];
        lower[i * n + j] = i === j ? Math.sqrt(sum) : sum / lower[j * n + j];
      }
    }
    const half = new Float64Array(n * n); // by columns in rows
    for (let j = 0; j < n; j++) {
      half[j * n + j] = 1 / lower[j * n + j];
      for (let i = j + 1; i < n; i++) {
        let sum = 0;
        for (let k = j; k < i; k++) sum -= lower[i * n + k] * half[j * n + k];
        half[j * n + i] = sum / lower[i * n + i];
      }
    }
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) lower[i * n + j] = half[j * n + i];
    return lower;
  }

  const halves = new Map(), surfaces = new Map();
  function halfOf(parameters, rows) {
    const key = parameters + ":" + rows, n = rows.length, scales = parameters.map(Math.exp);
    if (!halves.has(key)) {
      const matrix = new Float64Array(n * n);
      for (let i = 0; i < n; i++) {
        for (let j = 0; j < i; j++) matrix[i * n + j] = alike(columns[rows[i]], columns[rows[j]], scales);
        matrix[i * n + i] = 1 + scales[scales.length - 1] + 1e-10;
      }
      halves.set(key, halfInverse(matrix, n));
    }
    return halves.get(key);
  }
  // The process of all replays, or of those of one mode.
  function partOf(about, number, parameters, rows) {
    const n = rows.length, scales = parameters.map(Math.exp), half = halfOf(parameters, rows);
    const known = rows.map((row) => replays[row].values[number]);
    const y = about.scale === "linear" ? known : known.map((v) => Math.log(Math.max(v, 0) + about.floor));
    const mean = y.reduce((a, b) => a + b, 0) / n;
    const weights = new Float64Array(n), own = new Float64Array(n), squares = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const row = i * n;
      let sum = 0;
      for (let j = 0; j <= i; j++) sum += half[row + j] * (y[j] - mean);
      for (let j = 0; j <= i; j++) {
        weights[j] += half[row + j] * sum;
        own[j] += half[row + j] ** 2;
      }
    }
    const variance = Math.max(weights.reduce((sum, each, i) => sum + each * (y[i] - mean), 0) / n, 1e-18);
    for (let i = 0; i < n; i++)
      squares[i] = Math.min(Math.abs(weights[i] / own[i] / Math.sqrt(variance / own[i])), near.error_most) ** 2;
    return { rows, scales, scatter: scales[scales.length - 1], half, mean, weights, variance, squares, n };
  }
  function surfaceOf(name, place) {
    const number = numberOf[name], about = quantities[number].surface;
    if (!about) return null;
    const code = about.part_of[place[CACHE]], key = `${code}:${name}`;
    if (!surfaces.has(key)) {
      const rows = replays.map((_, n) => n).filter((n) => replays[n].values[number] != null &&
        about.part_of[replays[n].place[CACHE]] === code);
      surfaces.set(key, { about, ...partOf(about, number, about.parts[code], rows) });
    }
    return surfaces.get(key);
  }

  // The middle, and unless it alone is wanted half the band, which takes n times as long.
  function raw(surface, place, isBanded) {
    const at = columnsOf(place);
    const { n, rows, scales, half, weights, squares, scatter } = surface;
    const common = new Float64Array(n);
    let middle = surface.mean, close = near.nearby, unrest = near.nearby;
    for (let i = 0; i < n; i++) {
      common[i] = alike(at, columns[rows[i]], scales);
      middle += common[i] * weights[i];
      const weight = common[i] ** near.sharper;
      close += weight;
      unrest += weight * squares[i];
    }
    if (!isBanded) return [middle, 0];
    let left = 1 + scatter;
    for (let i = 0; i < n; i++) {
      let sum = 0;
      const row = i * n;
      for (let j = 0; j <= i; j++) sum += half[row + j] * common[j];
      left -= sum * sum;
    }
    const spread = Math.sqrt(surface.variance * Math.max(left, scatter));
    return [middle, surface.about.factors[place[CACHE]] * spread * Math.sqrt(unrest / close)];
  }

  const keyOf = (place) => place.join(",");
  const replayAt = new Map(replays.map((each) => [keyOf(each.place), each]));
  const first = quantities.find((each) => each.surface);
  const firstScales = first ? first.surface.parameters.map(Math.exp)
    : [...ordered.map(() => 1), ...words.map(() => 0.2)]; // of too few replays: FIRST in surface.py

  const nearnessAt = new Map();
  function nearness(place) {
    const key = keyOf(place);
    if (!nearnessAt.has(key)) {
      if (nearnessAt.size > 5000) nearnessAt.clear();
      const at = columnsOf(place);
      const weights = columns.map((each) => alike(at, each, firstScales) ** near.power);
      const sum = Math.max(weights.reduce((a, b) => a + b, 0), 1e-300);
      nearnessAt.set(key, weights.map((each) => each / sum));
    }
    return nearnessAt.get(key);
  }
  const partly = quantities.map((_, n) => replays.some((each) => each.values[n] == null));

  const NOTHING = { value: null, low: null, high: null, replayed: false, doubt: false };
  const kept = new Map(), keptValues = new Map();
  const once = (results, key, compute) => {
    if (!results.has(key)) {
      if (results.size > 40000) results.clear();
      results.set(key, compute());
    }
    return results.get(key);
  };
  const estimate = (name, place) => once(kept, name + ":" + keyOf(place), () => estimated(name, place, true));
  const valueOf = (name, place) => once(keptValues, name + ":" + keyOf(place), () => estimated(name, place, false).value);
  function estimated(name, place, isBanded) {
    const exact = replayAt.get(keyOf(place)), number = numberOf[name];
    if (exact) {
      const value = exact.values[number];
      return { value, low: value, high: value, replayed: true, doubt: false };
    }
    const surface = surfaceOf(name, place);
    if (!surface) return NOTHING;
    let share = 1;
    if (partly[number]) {
      const weights = nearness(place);
      share = replays.reduce((sum, each, n) => sum + (each.values[number] == null ? 0 : weights[n]), 0);
    }
    const doubt = near.doubt < share && share < 1 - near.doubt;
    if (share < 0.5) return { ...NOTHING, doubt };
    const [middle, half] = raw(surface, place, isBanded);
    const out = surface.about.scale === "linear"
      ? (v) => Math.min(Math.max(v, 0), 1)
      : (v) => Math.max(Math.exp(Math.min(v, 690)) - surface.about.floor, 0);
    return { value: out(middle), low: out(middle - half), high: out(middle + half), replayed: false, doubt };
  }

  // The judge's rule: answer_of in hybridsim/answers/forecast.py.
  function ruled(expected, half) {
    if (expected >= Math.log(rule.worth_it))
      return expected - rule.sure * half >= Math.log(rule.nothing) && expected >= rule.loss * half ? "yes" : "unsure";
    return expected + rule.sure * half < Math.log(rule.much) ? "no" : "unsure";
  }
  function answer(place) {
    const exact = replayAt.get(keyOf(place));
    if (exact) return [exact.answer, false];
    const later = estimate("forecast", place), low = estimate("forecast.low", place);
    if (later.value == null || low.value == null) {
      const weights = nearness(place), shares = {};
      for (const each of ["yes", "no", "unsure"])
        shares[each] = replays.reduce((sum, one, n) => sum + (one.answer === each ? weights[n] : 0), 0);
      const best = Object.keys(shares).reduce((a, b) => (shares[b] > shares[a] ? b : a));
      return [best, shares[best] < 1 - near.doubt];
    }
    const log = (value) => Math.log(Math.max(value, 1e-9));
    const ends = (each) => [each.low || each.value, each.high || each.value].map(log);
    const expected = log(later.value), half = expected - log(low.value);
    const given = ruled(expected, half);
    const others = [
      ...ends(later).map((end) => ruled(end, half)),
      ...ends(low).map((end) => ruled(expected, Math.max(expected - end, 0)))];
    const seen = estimate("gain", place).low;
    const isShown = seen == null || seen >= rule.worth_it; // the judge's yes needs a capture that shows it
    return [given, others.some((each) => each !== given) || (given === "yes" && !isShown)];
  }
  // Whether an answer is right at either end of the forecast: is_certain in hybridsim/answers/forecast.py.
  function isCertain(place) {
    const exact = replayAt.get(keyOf(place)), [given] = answer(place);
    if (exact && (exact.saturated || exact.alone_saturated)) return true;
    const low = estimate("forecast.low", place).value, high = estimate("forecast.high", place).value;
    if (given === "yes") return low == null || low >= rule.nothing;
    return given !== "no" || high == null || high < rule.much;
  }
  // The answer in words, "Yes" or "Probably yes", and " ?" where another one is within the error.
  function inWords(place) {
    const [given, mayDiffer] = answer(place), plain = given[0].toUpperCase() + given.slice(1);
    return (isCertain(place) ? plain : PROBABLE[given].replace(".", "")) + (mayDiffer ? " ?" : "");
  }
  function saturated(place, key) {
    const exact = replayAt.get(keyOf(place));
    if (exact) return exact[key];
    const weights = nearness(place);
    return replays.reduce((sum, each, n) => sum + (each[key] ? weights[n] : 0), 0) > 0.5;
  }

  // ---- Words.

  const DASH = "\u2013", THIN = "\u202f";
  const digits = (value, n = 3) => {
    if (value === 0) return "0";
    const places = Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(value)) + 1e-9));
    const text = value.toFixed(Math.min(places, 6));
    return Math.abs(value) >= 1000 ? Number(text).toLocaleString("en-US") : text;
  };
  const time = (ns) => {
    if (ns == null) return DASH;
    if (!ns) return "0 s";
    if (ns < 1e3) return digits(ns) + " ns";
    if (ns < 1e6) return digits(ns / 1e3) + " us";
    if (ns < 1e9) return digits(ns / 1e6) + " ms";
    if (ns < 60e9) return digits(ns / 1e9) + " s";
    const seconds = Math.round(ns / 1e9), minutes = Math.floor(seconds / 60);
    return minutes < 60 ? `${minutes}m ${seconds % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`;
  };
  const percent = (share) => {
    if (share == null) return DASH;
    const number = 100 * share;
    return (number >= 99.95 && share < 1 ? ">99.9" : number >= 10 ? number.toFixed(number < 99 ? 0 : 1) : number.toFixed(1)) + "%";
  };
  const factor = (value) => (value == null ? DASH : value >= 10 ? value.toFixed(0) : value.toFixed(2));
  const money = (value) => {
    if (value == null) return DASH;
    const text = value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(2);
    return doc.price.currency === "USD" ? "$" + text : `${doc.price.currency} ${text}`;
  };
  const bytes = (size) => {
    for (const [unit, power] of [["TiB", 40], ["GiB", 30], ["MiB", 20], ["KiB", 10]])
      if (size >= 2 ** power) return digits(size / 2 ** power) + " " + unit;
    return size + " B";
  };
  const lasting = (years) => (years == null ? DASH : years >= 30 ? "more than 30 years" : years >= 1 ? years.toFixed(1) + " years" : (12 * years).toFixed(1) + " months");
  const UNITS = { share: percent, ns: time, factor, number: (v) => (v == null ? DASH : digits(v)) };
  const AT_ONCE_NS = 1e8; // a shorter warm-up is none: it is a multiple of the width of a time bin
  const worded = (name, value) =>
    name === "warmup" && value != null && value < AT_ONCE_NS ? "at once" : UNITS[quantities[numberOf[name]].unit](value);
  // How wide the band is.
  function band(name, found) {
    if (found.value == null || found.replayed) return "";
    const [low, high] = [found.low, found.high].map((end) => worded(name, end));
    if (low === high) return "";
    const unit = (high.match(/[^\d.,]+$/) ?? [""])[0]; // once, if both have it
    return `likely ${unit && low.endsWith(unit) && /\d$/.test(low.slice(0, -unit.length)) ? low.slice(0, -unit.length) : low} to ${high}`;
  }

  // ---- The state: a place, prices, what is compared, and the requirement.

  const caches = axes[CACHE].choices;
  const sizes = axes[SIZE].choices;
  const state = {
    place: [...doc.base],
    ssdPrice: doc.price.ssd_per_gb,
    diskPrice: doc.price.hdd_per_gb,
    pinned: null,
    quantity: "",
    bound: null,
    sorted: null, // the table of caches: { by: a heading, turned: the best ones last }
  };
  const known = (name) => replays.some((each) => each.values[numberOf[name]] != null);
  const SHOWN = ["mean.reads.whole", "p99.reads.whole", "hit.whole", "p99.writes.whole", "mean.writes.whole", "gain",
    "dwpd.whole"].filter((name) => name in numberOf && known(name));
  state.quantity = SHOWN[0];

  function costs(place) {
    const ssd = axes[SSD].choices[place[SSD]], disks = axes[MEMBERS].choices[place[MEMBERS]];
    const copies = caches[place[CACHE]].copies ?? 1;
    const ssds = ssd.kind === "ssd" ? copies * ssd.gb * state.ssdPrice : null;
    const per = { hdd: state.diskPrice, ssd: state.ssdPrice }[disks.kind];
    return { ssds, copies, drives: copies * (ssd.drives ?? 1), disks: per == null ? null : disks.gb * per };
  }
  const total = ({ ssds, disks }) => (ssds == null || disks == null ? null : ssds + disks);
  function years(place, wear) {
    const ssd = axes[SSD].choices[place[SSD]];
    if (wear == null || !ssd.endurance_bytes) return null;
    return wear === 0 ? Infinity : ssd.endurance_bytes / (wear * ssd.capacity_bytes) / 365.25;
  }
  function nameOf(place) {
    const parts = [`${sizes[place[SIZE]].name} of ${axes[SSD].choices[place[SSD]].name}`, wordsOf(place)];
    if (axes[MEMBERS].choices.length > 1) parts.push(`${axes[MEMBERS].choices[place[MEMBERS]].name} disks`);
    const load = axes[LOAD].choices[place[LOAD]].name;
    if (load !== "1") parts.push(`${load} times the load`);
    return parts.join(", ");
  }
  const sized = (place, size) => place.map((each, axis) => (axis === SIZE ? size : each));
  const cached = (place, cache) => place.map((each, axis) => (axis === CACHE ? cache : each));
  const wordsOf = (place) => caches[place[CACHE]].words.filter(Boolean).join(" ");
  const wantsLess = (name) => quantities[numberOf[name]].wants_less;
  const meets = (name, value) =>
    value != null && state.bound != null && (wantsLess(name) ? value <= state.bound : value >= state.bound);

  // The sizes that meet the requirement: a run up to the largest size, else the longest run.
  function metRun(place) {
    const runs = [];
    sizes.forEach((_, size) => {
      if (!meets(state.quantity, valueOf(state.quantity, sized(place, size)))) return;
      if (size && runs.length && runs[runs.length - 1].last === size - 1) runs[runs.length - 1].last = size;
      else runs.push({ likely: size, last: size });
    });
    if (!runs.length) return { likely: null, last: null, more: false };
    const long = (run) => (run.last === sizes.length - 1 ? sizes.length : run.last - run.likely);
    return { ...runs.reduce((best, each) => (long(each) > long(best) ? each : best)), more: runs.length > 1 };
  }
  // The same, with the smallest of them that surely meets it.
  function smallest(place) {
    if (state.bound == null) return null;
    const run = metRun(place);
    const sure = sizes.findIndex((_, size) => size >= run.likely && size <= run.last && isSure(sized(place, size)));
    return { ...run, sure: sure < 0 ? null : sure };
  }
  function isSure(place, name = state.quantity) {
    const { low, high } = estimate(name, place);
    return meets(state.quantity, wantsLess(state.quantity) ? high : low);
  }
  // What meets the requirement at this load, by cost: of each cache, and of the disks alone, the cheapest machine.
  function meeting() {
    const found = new Map();
    const offer = (label, cost, place, size, sure) => {
      const best = found.get(label);
      if (cost != null && !(best && (best.cost < cost || (best.cost === cost && best.size <= size)))) found.set(label, { label, cost, place, size, sure });
    };
    axes[MEMBERS].choices.forEach((_, members) => axes[SSD].choices.forEach((_, ssd) => {
      const here = state.place.map((each, axis) => (axis === MEMBERS ? members : axis === SSD ? ssd : each));
      const alone = "alone." + state.quantity;
      if (alone in numberOf) {
        if (meets(state.quantity, valueOf(alone, here))) offer("disks alone", costs(here).disks, here, -1, isSure(here, alone));
      }
      caches.forEach((_, cache) => {
        const { likely } = metRun(cached(here, cache));
        if (likely == null) return;
        const place = sized(cached(here, cache), likely);
        offer(wordsOf(place), total(costs(place)), place, likely, isSure(place));
      });
    }));
    return [...found.values()].sort((one, other) => one.cost - other.cost || one.size - other.size);
  }
  // The price of SSDs up to which a cache meets the requirement for less than disks alone; null if the disks cannot meet
  // it, or no cache can.
  function breakEven() {
    const alone = "alone." + state.quantity;
    if (state.bound == null || !(alone in numberOf)) return null;
    let disksAlone = Infinity, most = null;
    const each = (act) => axes[MEMBERS].choices.forEach((_, members) => axes[SSD].choices.forEach((_, ssd) =>
      act(state.place.map((n, axis) => (axis === MEMBERS ? members : axis === SSD ? ssd : n)))));
    each((here) => {
      const { disks } = costs(here);
      if (disks != null && meets(state.quantity, valueOf(alone, here))) disksAlone = Math.min(disksAlone, disks);
    });
    if (disksAlone === Infinity) return null;
    each((here) => caches.forEach((_, cache) => {
      const { disks } = costs(here), ssd = axes[SSD].choices[here[SSD]];
      if (ssd.kind !== "ssd" || metRun(cached(here, cache)).likely == null) return;
      most = Math.max(most ?? 0, (disksAlone - disks) / ((caches[cache].copies ?? 1) * ssd.gb));
    }));
    return most == null ? null : { price: most, disks: disksAlone };
  }
  function metBy({ likely, last }) {
    const [from, to] = [sizes[likely].name, sizes[last].name];
    if (last === sizes.length - 1) return `Met from ${from} on`;
    return likely === 0 ? `Met up to ${to}` : likely === last ? `Met at ${from}` : `Met from ${from} to ${to}`;
  }

  // ---- Charts, as SVG.

  const SVG = "http://www.w3.org/2000/svg";
  function draw(tag, attributes, ...children) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }
  function html(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") made.className = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (typeof value === "boolean") made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }
  function ticksOf(low, high, isLog, count) {
    const ticks = [];
    if (isLog) {
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
        for (const step of high / low > 300 ? [1] : high / low > 20 ? [1, 3] : [1, 2, 5]) {
          const tick = step * 10 ** power;
          if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
        }
      return ticks;
    }
    const power = 10 ** Math.floor(Math.log10((high - low) / count));
    const off = (each) => Math.abs((high - low) / (each * power) - count);
    const step = [1, 2, 5, 10].reduce((best, each) => (off(each) < off(best) ? each : best)) * power;
    for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(Math.abs(tick) < step * 1e-6 ? 0 : tick);
    return ticks;
  }

  // A chart: lines with bands over positions 0 .. n-1 of named x values.
  function chart(figure, it) {
    const place = figure.querySelector(".live");
    const width = Math.max(place.clientWidth, 260), height = it.height ?? Math.round(Math.min(Math.max(width * 0.42, 210), 320));
    const left = 56, right = 14, top = 16, bottom = 44;
    const values = it.lines.flatMap((line) => [...line.y, ...(line.low ?? []), ...(line.high ?? [])])
      .concat(it.level == null ? [] : [it.level]).filter((v) => v != null && Number.isFinite(v));
    let low = it.log ? Math.min(...values.filter((v) => v > 0)) / 1.15 : 0;
    let high = it.top ?? (values.length ? Math.max(...values) * (it.log ? 1.15 : 1.06) : 1);
    if (!(high > low)) high = low + 1;
    if (it.log && !(low > 0)) low = high / 100;
    const last = it.names.length - 1;
    const x = (at) => left + (last ? at / last : 0.5) * (width - left - right);
    const y = (value) => {
      const share = it.log ? Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low) : (value - low) / (high - low);
      return height - bottom - Math.min(Math.max(share, -0.01), 1.01) * (height - top - bottom);
    };
    const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": it.words });
    const grid = draw("g", {});
    for (const tick of ticksOf(low, high, it.log, 5)) {
      grid.append(draw("path", { class: "grid", d: `M${left} ${y(tick)}H${width - right}` }),
        draw("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, it.shown(tick)));
    }
    const room = Math.max(1, Math.ceil(it.names.length / ((width - left - right) / (it.wide ?? 64))));
    it.names.forEach((name, at) => {
      if (at !== last && (at % room || last - at < room)) return;
      const anchor = at === last ? "end" : "middle";
      grid.append(draw("text", { x: at === last ? x(at) + 10 : x(at), y: height - bottom + 17, "text-anchor": anchor }, name));
    });
    grid.append(draw("path", { class: "axis", d: `M${left} ${top}V${height - bottom}H${width - right}` }),
      draw("text", { class: "title", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, it.axis));
    picture.append(grid);
    const path = (ys, from = 0) => {
      let text = "", pen = "M";
      ys.forEach((value, at) => {
        if (value == null || !Number.isFinite(value)) { pen = "M"; return; }
        text += `${pen}${x(at + from).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = "L";
      });
      return text;
    };
    for (const line of it.lines) {
      if (line.low) {
        let parts = [], areas = "";
        const close = () => {
          if (parts.length > 1)
            areas += "M" + parts.map((at) => `${x(at).toFixed(1)} ${y(line.high[at]).toFixed(1)}`).join("L") + "L" +
              parts.reverse().map((at) => `${x(at).toFixed(1)} ${y(line.low[at]).toFixed(1)}`).join("L") + "Z";
          parts = [];
        };
        line.low.forEach((value, at) => (value == null ? close() : parts.push(at)));
        close();
        picture.append(draw("path", { class: `reach f${line.colour}`, d: areas }));
      }
      picture.append(draw("path", { class: `line s${line.colour} d${line.dash ?? 0}${line.own ? " own" : ""}`, d: path(line.y) }));
      for (const at of line.dots ?? [])
        picture.append(draw("circle", { class: `dot f${line.colour}`, cx: x(at), cy: y(line.y[at]), r: 4 }));
    }
    if (it.level != null) {
      picture.append(draw("path", { class: "required", d: `M${left} ${y(it.level)}H${width - right}` }),
        draw("text", { class: "name over", x: width - right - 4, y: y(it.level) - 5, "text-anchor": "end" }, it.levelName));
    }
    if (it.at != null) {
      const own = it.lines.find((line) => line.own);
      picture.append(draw("path", { class: "cursor", d: `M${x(it.at)} ${top}V${height - bottom}` }));
      if (own && own.y[it.at] != null) {
        picture.append(draw("circle", { class: "cursor", cx: x(it.at), cy: y(own.y[it.at]), r: 7, fill: "none" }));
        const far = x(it.at) > width - 130;
        picture.append(draw("text", { class: "name over", x: x(it.at) + (far ? -12 : 12), y: Math.max(y(own.y[it.at]) - 9, top + 10),
          "text-anchor": far ? "end" : "start" }, it.shown(own.y[it.at])));
      }
    }
    const samples = html("ul", { class: "samples" }, ...it.lines.map((line) => html("li", {},
      draw("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" },
        draw("path", { class: `line s${line.colour} d${line.dash ?? 0}${line.own ? " own" : ""}`, d: "M0 5H26" })), line.label)));
    place.replaceChildren(picture, samples);
    place.ends = { left, right, width };
  }

  const PARTS = quantities.filter((each) => each.name.startsWith("hit.part.")).map((each) => each.name);
  const CURVE = ["p50", "p90", "p95", "p99", "p99.9"];
  const line = (label, names, place, more) => {
    const found = names.map((name) => estimate(name, place));
    return { label, y: found.map((each) => each.value), ...(more.band === false ? {} : {
      low: found.map((each) => each.low), high: found.map((each) => each.high) }), ...more };
  };

  function drawSizes() {
    const name = state.quantity, { place, pinned } = state;
    const over = (at, more) => {
      const found = sizes.map((_, size) => estimate(name, sized(at, size)));
      return { y: found.map((each) => each.value), low: found.map((each) => each.low), high: found.map((each) => each.high),
        dots: found.flatMap((each, size) => (each.replayed && each.value != null ? [size] : [])), ...more };
    };
    const lines = [];
    const alone = "alone." + name;
    if (alone in numberOf) {
      const found = estimate(alone, place).value;
      lines.push({ label: "disks alone", y: sizes.map(() => found), colour: 7, dash: 2 });
    }
    if (pinned) lines.push(over(pinned, { label: `compared: ${nameOf(pinned).replace(/^.*? of /, "")}`, colour: 0, dash: 1 }));
    lines.push(over(place, { label: wordsOf(place), colour: 1, own: true }));
    const title = quantities[numberOf[name]].title;
    const all = lines.flatMap((each) => each.y).filter((v) => v != null && v > 0);
    const figure = byId("over-size");
    figure.querySelector("figcaption").textContent = `${title[0].toUpperCase()}${title.slice(1)}, by cache size`;
    const now = estimate(name, place);
    chart(figure, {
      lines, names: sizes.map((each) => each.name), axis: "cache size", at: place[SIZE], level: state.bound,
      levelName: state.bound == null ? "" : "required", shown: (v) => worded(name, v),
      top: quantities[numberOf[name]].unit === "share" ? 1 : null, wide: 74,
      log: quantities[numberOf[name]].unit === "ns" && all.length > 0 && Math.max(...all) > 30 * Math.min(...all),
      words: `${title} by cache size: ${worded(name, now.value)} at ${sizes[place[SIZE]].name}`,
    });
  }
  function drawCurves() {
    const { place, pinned } = state;
    const lines = pinned ? [line("compared", PARTS, pinned, { colour: 0, dash: 1, band: false })] : [];
    lines.push(line("this cache", PARTS, place, { colour: 1, own: true }));
    const ends = [estimate(PARTS[0], place).value, estimate(PARTS[PARTS.length - 1], place).value];
    chart(byId("warming"), {
      lines, names: PARTS.map((_, n) => Math.round(100 * (n + 1) / PARTS.length) + "%"), axis: "share of the requests", wide: 46,
      shown: percent, top: Math.min(1, Math.max(0.05, 1.12 * Math.max(...lines.flatMap((each) => [...each.y, ...each.high ?? []]).filter((v) => v != null), 0))),
      words: `reads served by the SSD over the trace: from ${percent(ends[0])} to ${percent(ends[1])}`,
    });
    const names = CURVE.map((each) => each + ".reads.whole");
    const alone = names.map((each) => "alone." + each);
    const of = [line("disks alone", alone, place, { colour: 7, dash: 2, band: false })];
    if (pinned) of.push(line("compared", names, pinned, { colour: 0, dash: 1, band: false }));
    of.push(line("this cache", names, place, { colour: 1, own: true }));
    chart(byId("percentiles"), {
      lines: of, names: CURVE, axis: "percentile of the reads", shown: time, log: true, wide: 46,
      words: `p50 ${time(estimate(names[0], place).value)}, p99 ${time(estimate("p99.reads.whole", place).value)}`,
    });
  }

  // ---- Text.

  const SAY = { yes: "Use this cache", no: "Do not buy this cache" };
  function showVerdict() {
    const { place } = state, exact = replayAt.get(keyOf(place)), [given, mayDiffer] = answer(place);
    const later = estimate("forecast", place), low = estimate("forecast.low", place), high = estimate("forecast.high", place);
    let text;
    if (saturated(place, "saturated")) {
      text = saturated(place, "alone_saturated") ? "The disks cannot keep up with this load, with the cache or without."
        : "The disks alone keep up with this load; with the cache they do not.";
    } else if (saturated(place, "alone_saturated")) {
      text = "The disks alone cannot keep up with this load; with the cache they do.";
    } else if (later.value == null) {
      text = exact ? exact.headline : "The gain is unknown here, as in the replays nearby.";
    } else {
      text = `Forecast gain ${factor(later.value)} times (90%: ${factor(low.value)} to ${factor(high.value)}).`;
      if (exact) text = exact.headline;
    }
    const sure = exact ? "This machine was replayed, not interpolated."
      : mayDiffer ? "Interpolated, and near a border: the answer may be another one. Replay it exactly."
        : "Interpolated between replays.";
    const box = byId("verdict");
    box.className = `prose tone-${given}`;
    const word = given === "unsure" ? "Not decided by this capture"
      : `${inWords(place).replace(" ?", "")}. ${SAY[given]}`;
    box.children[0].textContent = `${word}: ${nameOf(place)}.`;
    box.children[1].textContent = `${text} ${sure}`;
  }

  function showFigures() {
    const { place, pinned } = state;
    const cells = [];
    const figure = (label, name, note) => {
      if (!known(name)) return;
      const found = estimate(name, place);
      const notes = found.doubt ? [] : [note(found)];
      if (!found.replayed && found.value != null) notes.push(band(name, found));
      if (found.doubt) notes.push(found.value == null ? `${name === "warmup" ? "steady at the end of" : "known of"} some replays nearby, not of others`
        : `or ${name === "warmup" ? "not steady at the end" : "unknown"}, as in some replays nearby`);
      if (pinned) notes.push(`compared: ${worded(name, estimate(name, pinned).value)}`);
      cells.push([label, found.value == null ? (found.doubt ? "unclear" : "unknown") : worded(name, found.value), notes, name]);
    };
    const alone = (name) => () => `disks alone: ${worded("alone." + name, estimate("alone." + name, place).value)}`;
    figure("Mean read", "mean.reads.whole", alone("mean.reads.whole"));
    figure("p99 of reads", "p99.reads.whole", alone("p99.reads.whole"));
    figure("Reads from the SSD", "hit.whole", () => "");
    figure("Gain", "gain", () => "second half of the requests");
    figure("Mean write", "mean.writes.whole", alone("mean.writes.whole"));
    figure("p99 of writes", "p99.writes.whole", alone("p99.writes.whole"));
    figure("Warm after", "warmup", (found) => (found.value == null ? "not steady at the end of the trace" : ""));
    figure("SSD wear", "dwpd.whole", (found) => `drive writes per day; ${lasting(years(place, found.value))}`);
    const cost = costs(place), before = pinned && costs(pinned);
    cells.push(["SSD cost", money(cost.ssds), [
      `${cost.drives} x ${axes[SSD].choices[place[SSD]].name}${cost.copies > 1 ? ", mirrored: only it has what was written last" : ""}`,
      before ? `compared: ${money(before.ssds)}` : ""], "cost"]);
    cells.push(["Disks and SSD", money(total(cost)), [`disks: ${money(cost.disks)}`, before ? `compared: ${money(total(before))}` : ""], "total"]);
    byId("figures").replaceChildren(...cells.map(([label, value, notes, name]) => html("div", { "data-figure": name },
      html("dt", {}, label), html("dd", {}, value, ...notes.filter(Boolean).map((each) => html("small", {}, each))))));
  }

  function showSmallest() {
    const box = byId("smallest");
    if (state.bound == null) {
      box.textContent = "Enter a requirement to find the smallest size that meets it.";
      return;
    }
    const found = smallest(state.place);
    if (found.likely == null) {
      box.textContent = "No size of this cache meets it.";
      return;
    }
    const sure = found.sure === found.likely ? "" : found.sure == null ? ", as interpolated; no size meets it with its whole band: replay it exactly"
      : `, as interpolated; from ${sizes[found.sure].name} on with its whole band`;
    box.textContent = `${metBy(found)}${sure}.${found.more ? " Other sizes meet it too: see the chart." : ""}`;
  }

  function showMeeting() {
    const rows = state.bound == null ? [] : meeting(), table = byId("meeting");
    table.parentElement.hidden = byId("meeting-title").hidden = rows.length === 0;
    const even = rows.length ? breakEven() : null, hasAlone = rows.some(({ size }) => size < 0);
    byId("worth").textContent = !rows.length || !("alone." + state.quantity in numberOf) ? ""
      : !hasAlone ? "Disks alone do not meet it, with any of these numbers of disks."
        : even == null ? "" : even.price <= 0 ? `Disks alone meet it for ${money(even.disks)}: no cache costs less, at any price of SSDs.`
          : `Disks alone meet it for ${money(even.disks)}. A cache costs less while SSDs cost less than ${perGB(even.price)}.`;
    const ssdsVary = axes[SSD].choices.length > 1, membersVary = axes[MEMBERS].choices.length > 1;
    table.tHead.replaceChildren(html("tr", {}, ...["cache", "in all", "size", ...(membersVary ? ["disks"] : []), ...(ssdsVary ? ["SSD"] : [])]
      .map((head) => html("th", { scope: "col" }, head))));
    table.tBodies[0].replaceChildren(...rows.map(({ label, cost, place, size, sure }) => {
      const isAlone = size < 0;
      const cells = [money(cost), isAlone ? DASH : sizes[size].name, ...(membersVary ? [axes[MEMBERS].choices[place[MEMBERS]].name] : []),
        ...(ssdsVary ? [isAlone ? DASH : axes[SSD].choices[place[SSD]].name] : [])];
      const name = isAlone ? label : html("button", { type: "button", onclick: () => { state.place = [...place]; update(); } }, label);
      return html("tr", {}, html("th", { scope: "row" }, name, sure ? "" : " ?"), ...cells.map((cell) => html("td", {}, cell)));
    }));
  }

  // It stays in sight while the sliders move and the page scrolls.
  function showStrip() {
    const { place } = state, [given] = answer(place);
    const verdict = html("b", { class: `tone-${given}` }, inWords(place));
    const figure = (label, name) => (known(name) ? [html("span", {}, `${label} ${worded(name, estimate(name, place).value)}`)] : []);
    byId("strip").replaceChildren(verdict, ...figure("p99", "p99.reads.whole"), ...figure("mean", "mean.reads.whole"),
      ...figure("SSD hits", "hit.whole"), html("span", {}, money(costs(place).ssds)));
  }

  const ANSWERS = { yes: 0, unsure: 1, no: 2 };
  const COLUMNS = [["from SSD", "hit.whole"], ["mean read", "mean.reads.whole"], ["p99 read", "p99.reads.whole"],
    ["mean write", "mean.writes.whole"], ["forecast", "forecast"], ["writes/day", "dwpd.whole"]].filter(([, name]) => known(name));
  function showCaches() {
    const table = byId("caches");
    // Each column: its heading, what a cell shows, and by what it is sorted, the best with the smallest.
    const columns = [
      ["use it?", (place) => [inWords(place).toLowerCase(), ANSWERS[answer(place)[0]]]],
      ...COLUMNS.map(([head, name]) => [head, (place) => {
        const { value } = estimate(name, place);
        return [worded(name, value), value == null ? Infinity : wantsLess(name) ? value : -value];
      }]),
      ["SSD cost", (place) => [money(costs(place).ssds), costs(place).ssds ?? Infinity]],
      ...(state.bound == null ? [] : [["size needed", (place) => {
        const { likely, sure } = smallest(place);
        return likely == null ? ["none", Infinity] : [sizes[likely].name + (sure === likely ? "" : " ?"), likely];
      }]]),
    ];
    const rows = caches.map((_, number) => ({ number, cells: columns.map(([, of]) => of(cached(state.place, number))) }));
    const by = state.sorted ? columns.findIndex(([head]) => head === state.sorted.by) : -1;
    if (by >= 0) {
      const sign = state.sorted.turned ? -1 : 1;
      rows.sort(({ cells: one }, { cells: other }) => // what is shown alike keeps its order
        (one[by][0] === other[by][0] ? 0 : sign * (one[by][1] < other[by][1] ? -1 : 1)));
    }
    const focused = table.contains(document.activeElement) ? document.activeElement.dataset : {};
    const sort = (head) => {
      const { sorted } = state;
      state.sorted = sorted?.by !== head ? { by: head, turned: false } : sorted.turned ? null : { by: head, turned: true };
      update();
    };
    table.tHead.replaceChildren(html("tr", {}, html("th", { scope: "col" }, "cache"), ...columns.map(([head], n) => html("th", {
      scope: "col", ...(n === by ? { "aria-sort": "other" } : {}),
    }, html("button", { type: "button", "data-sort": head, title: "Sort: best first, then last, then as it was", onclick: () => sort(head) },
      head + (n !== by ? "" : state.sorted.turned ? " \u25b4" : " \u25be"))))));
    table.tBodies[0].replaceChildren(...rows.map(({ number, cells }) => {
      const own = number === state.place[CACHE];
      return html("tr", { class: own ? "strong" : "", ...(own ? { "aria-current": "true" } : {}) },
        html("th", { scope: "row" }, html("button", { type: "button", "data-cache": number, onclick: () => { state.place[CACHE] = number; update(); } },
          ...(own ? ["\u25b8\u00a0"] : []), ...wordsOf(cached(state.place, number)).split(" ").flatMap((word, n) =>
            [...(n ? [" "] : []), html("span", { class: "word" }, word)]))),
        ...cells.map(([cell]) => html("td", {}, cell)));
    }));
    if (focused.cache != null) table.querySelector(`[data-cache="${focused.cache}"]`).focus();
    if (focused.sort != null) table.querySelector(`[data-sort="${focused.sort}"]`)?.focus();
  }
  const command = (place) => [doc.command.base, ...axes.map((axis, n) => axis.choices[place[n]].options)].filter(Boolean).join(" ");
  function showCommand() {
    byId("command").textContent = command(state.place);
    byId("exact-words").textContent = replayAt.has(keyOf(state.place))
      ? "This machine was replayed. The command repeats it, with all figures and the full verdict."
      : "The figures above are interpolated. This command replays this machine.";
    byId("copied").textContent = "";
  }

  // ---- Controls.

  const unique = (list) => [...new Set(list)];
  // The words that were chosen by hand.  A cache that lacks one does not change it: who goes past dm-writecache, which
  // has one mode, keeps the mode of before.  Another way to a cache (a table, a link) chooses all its words.
  const wished = { words: [], cache: -1 };
  const TITLES = { 0: "kinds", 1: "modes", 2: "policies" };
  function pills(place, names, chosen, able, title, choose) {
    const legend = place.querySelector("legend");
    if (place.children.length !== names.length + 1 || names.some((name, n) => place.children[n + 1].dataset.name !== name)) {
      place.replaceChildren(legend, ...names.map((name) => {
        const input = html("input", { type: "radio", name: place.id, value: name });
        input.addEventListener("change", () => choose(name));
        const made = html("label", { class: "pill" }, input, html("span", {}, title(name)));
        made.dataset.name = name;
        return made;
      }));
    }
    names.forEach((name, n) => {
      const input = place.children[n + 1].firstChild;
      input.checked = name === chosen;
      input.disabled = !able(name);
    });
    place.hidden = names.length < 2;
  }
  function showChoices() {
    const words = () => caches[state.place[CACHE]].words; // a control outlives the cache that it was made for
    const own = words();
    [0, 1, 2].forEach((position) => {
      // What goes with the words before this one; of others the nearest cache is chosen.
      const goes = caches.filter((each) => each.words.slice(0, position).every((word, n) => word === own[n]));
      const names = unique((position === 1 ? caches : goes).map((each) => each.words[position])).filter(Boolean);
      pills(byId(TITLES[position]), names, own[position], (name) => goes.some((each) => each.words[position] === name),
        (name) => name, (name) => {
          if (wished.cache !== state.place[CACHE]) wished.words = [...words()];
          wished.words[position] = name;
          const score = (each) => each.words.reduce((sum, word, n) => sum + (word === wished.words[n] ? [100, 10, 1][n] * (n === position ? 100 : 1) : 0), 0);
          state.place[CACHE] = wished.cache = caches.reduce((best, each, n) => (score(each) > score(caches[best]) ? n : best), 0);
          update();
        });
    });
    const ssds = axes[SSD].choices;
    pills(byId("ssds"), ssds.map((_, n) => String(n)), String(state.place[SSD]), () => true, (n) => ssds[n].name,
      (n) => { state.place[SSD] = Number(n); update(); });
  }

  const sliders = [];
  function slider(id, label, from, to, step, get, set, shown) {
    const box = byId(id);
    const input = html("input", { type: "range", id: `${id}-input`, min: from, max: to, step });
    const output = html("output", { for: `${id}-input` });
    box.replaceChildren(html("div", {}, html("label", { for: `${id}-input` }, label), output), input);
    box.hidden = !(to > from);
    input.addEventListener("input", () => { set(Number(input.value)); update(); });
    sliders.push(() => {
      input.value = get();
      output.textContent = shown();
      input.setAttribute("aria-valuetext", shown());
    });
  }
  const along = (axis) => [0, axes[axis].choices.length - 1, 1, () => state.place[axis], (v) => { state.place[axis] = v; }];
  const touched = doc.inputs.trace.footprint_bytes;
  slider("slide-size", "Cache size", ...along(SIZE), () => {
    const size = sizes[state.place[SIZE]];
    return `${size.name} \u00b7 ${percent(Math.exp(size.at) / touched)} of the data`;
  });
  slider("slide-members", "Disks", ...along(MEMBERS), () => axes[MEMBERS].choices[state.place[MEMBERS]].name);
  slider("slide-load", "Load", ...along(LOAD), () => {
    const { name } = axes[LOAD].choices[state.place[LOAD]];
    if (name === "1") return "as recorded";
    return doc.inputs.mode === "think" ? `pauses at ${name} times the speed` : `${name} times as fast`;
  });
  const perGB = (value) => `${doc.price.currency === "USD" ? "$" : doc.price.currency + " "}${value.toFixed(3)} per GB`;
  slider("slide-ssd-price", "Price of SSDs", 0.01, Math.max(1, 2 * doc.price.ssd_per_gb), 0.001, () => state.ssdPrice, (v) => { state.ssdPrice = v; }, () => perGB(Number(state.ssdPrice.toFixed(3))));
  slider("slide-disk-price", "Price of disks", 0.005, Math.max(0.2, 2 * doc.price.hdd_per_gb), 0.001, () => state.diskPrice, (v) => { state.diskPrice = v; }, () => perGB(Number(state.diskPrice.toFixed(3))));
  if (axes[SSD].choices.every((each) => each.kind !== "ssd")) byId("slide-ssd-price").hidden = true;
  if (axes[MEMBERS].choices.every((each) => each.kind !== "hdd")) byId("slide-disk-price").hidden = true;

  const chooser = byId("quantity");
  chooser.replaceChildren(...SHOWN.map((name) => html("option", { value: name }, quantities[numberOf[name]].title)));
  chooser.addEventListener("change", () => { state.quantity = chooser.value; state.bound = null; byId("bound").value = ""; update(); });
  const PER = { ns: [1e6, "ms"], share: [0.01, "%"], factor: [1, "times"], number: [1, "per day"] };
  byId("bound").addEventListener("input", () => {
    const text = byId("bound").value, number = Number(text);
    state.bound = text === "" || !(number >= 0) ? null : number * PER[quantities[numberOf[state.quantity]].unit][0];
    update();
  });
  byId("pin").addEventListener("click", () => { state.pinned = state.pinned ? null : [...state.place]; update(); });
  byId("reset").addEventListener("click", () => {
    Object.assign(state, { place: [...doc.base], ssdPrice: doc.price.ssd_per_gb, diskPrice: doc.price.hdd_per_gb, pinned: null,
      quantity: SHOWN[0], bound: null, sorted: null });
    byId("bound").value = "";
    update();
  });
  byId("copy-command").addEventListener("click", async () => {
    const status = byId("copied");
    try {
      await navigator.clipboard.writeText(byId("command").textContent);
      status.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(byId("command"));
      status.textContent = document.execCommand("copy") ? "copied" : "not copied: the browser does not allow it";
    }
  });
  document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());

  // Dragging in the chart changes the size.
  const live = byId("over-size").querySelector(".live");
  const slide = (event) => {
    const box = live.querySelector("svg").getBoundingClientRect(), { left, right, width } = live.ends;
    const share = ((event.clientX - box.left) * width / box.width - left) / (width - left - right);
    const size = Math.round(Math.min(Math.max(share, 0), 1) * (sizes.length - 1));
    if (size !== state.place[SIZE]) { state.place[SIZE] = size; update(); }
  };
  live.addEventListener("pointerdown", (event) => {
    if (event.button || !event.target.closest("svg")) return;
    live.setPointerCapture(event.pointerId);
    if (event.pointerType !== "touch") slide(event); // a finger may be about to scroll the page
  });
  live.addEventListener("pointermove", (event) => { if (live.hasPointerCapture(event.pointerId)) slide(event); });

  // The state is in the address, so that a link shows the same machine.
  function save() {
    const parts = [state.place.join("."), state.ssdPrice, state.diskPrice, state.quantity, state.bound ?? "", state.pinned?.join(".") ?? ""];
    try { history.replaceState(null, "", "#" + parts.join("/")); } catch { /* in a frame without an address */ }
  }
  function load() {
    const [place, ssd, disk, quantity, bound, pinned] = decodeURIComponent(location.hash.slice(1)).split("/");
    const read = (text) => {
      const numbers = (text ?? "").split(".").map(Number);
      return numbers.length === axes.length && numbers.every((n, axis) => Number.isInteger(n) && axes[axis].choices[n]) ? numbers : null;
    };
    state.place = read(place) ?? state.place;
    state.pinned = read(pinned);
    if (ssd > 0) state.ssdPrice = Number(ssd);
    if (disk > 0) state.diskPrice = Number(disk);
    if (SHOWN.includes(quantity)) state.quantity = quantity;
    if (bound) {
      state.bound = Number(bound);
      byId("bound").value = digits(state.bound / PER[quantities[numberOf[state.quantity]].unit][0]);
    }
  }

  function render() {
    showChoices();
    sliders.forEach((each) => each());
    const unit = quantities[numberOf[state.quantity]].unit;
    chooser.value = state.quantity;
    byId("bound-words").textContent = `Required: ${wantsLess(state.quantity) ? "at most" : "at least"}`;
    byId("bound-unit").textContent = PER[unit][1];
    byId("pin").setAttribute("aria-pressed", String(Boolean(state.pinned)));
    byId("pin").textContent = state.pinned ? "Stop comparing" : "Compare with this";
    showVerdict();
    showFigures();
    showStrip();
    drawSizes();
    drawCurves();
    showSmallest();
    showMeeting();
    showCaches();
    showCommand();
    save();
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
  }
  let due = false;
  function update() {
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; render(); });
  }
  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; update(); } });

  new IntersectionObserver(([seen]) => { byId("strip").classList.toggle("needed", !seen.isIntersecting); }).observe(byId("verdict"));

  load();
  document.querySelector("main").hidden = false;
  render();
  window.explorer = {
    doc, state, estimate, answer, inWords, command, costs, smallest, meeting, breakEven, update,
  };
})();
