// Any two builds, models, runs or machines.
//
// Pairs of one run were compared when the site was made.  Two runs are compared here, from where each cell lies by its
// run, as stats/unpaired.py, stats/common_shift.py, stats/verdict.py and report/comparison.py do it; tests hold the words
// against theirs.
"use strict";

window.gilscopeRuns = {};

(() => {
  const known = JSON.parse(document.getElementById("known").textContent);
  const by = known.constants;

  // ---- Student's t: stats/distributions.py

  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];

  const logGamma = x => {
    const shifted = x - 1;
    const sum = LANCZOS.slice(1).reduce((all, each, i) => all + each / (shifted + i + 1), LANCZOS[0]);
    const t = shifted + 7.5;
    return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(t) - t + Math.log(sum);
  };

  const notZero = value => Math.abs(value) > 1e-300 ? value : 1e-300;

  const fraction = (a, b, x) => {
    let upper = 1;
    let lower = 1 / notZero(1 - (a + b) * x / (a + 1));
    let value = lower;
    for (let m = 1; m < 1000; m += 1) {
      const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      for (const step of [even, odd]) {
        lower = 1 / notZero(1 + step * lower);
        upper = notZero(1 + step / upper);
        value *= upper * lower;
      }
      if (Math.abs(upper * lower - 1) < 1e-15) break;
    }
    return value;
  };

  const incompleteBeta = (a, b, x) => {
    if (x <= 0 || x >= 1) return x >= 1 ? 1 : 0;
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * fraction(a, b, x) / a : 1 - front * fraction(b, a, 1 - x) / b;
  };

  const NEARLY_NORMAL = 1e5;   // degrees of freedom: with more it is the normal distribution to five digits

  const tOutside = (distance, freedom) => {
    const free = Math.min(freedom, NEARLY_NORMAL);
    return incompleteBeta(free / 2, 0.5, free / (free + distance * distance));
  };

  const tQuantile = (confidence, freedom) => {
    if (freedom <= 0) return Infinity;
    let [low, high] = [0, 1];
    while (tOutside(high, freedom) > 1 - confidence) high *= 2;
    while (high - low > 1e-9 * high) {
      const middle = (low + high) / 2;
      if (tOutside(middle, freedom) > 1 - confidence) low = middle; else high = middle;
    }
    return high;
  };

  // ---- Two runs: stats/unpaired.py

  const unknown = value => value === null ? Infinity : value;

  const levelOf = cell => {
    const [center, rounds, own, ownFreedom, usual, usualFreedom, machine, machineFreedom, kept] = cell.level;
    const part = (square, freedom) => ({ square: unknown(square), freedom: unknown(freedom) });
    return { center, rounds, kept, own: part(own, ownFreedom), usual: part(usual, usualFreedom),
      machine: part(machine, machineFreedom) };
  };

  const partsOf = (level, own) => [{ square: own.square * level.kept, freedom: own.freedom }, level.machine];

  const totalOf = parts => {
    const counted = parts.filter(each => each.square > 0);
    const square = counted.reduce((all, each) => all + each.square, 0);
    if (!counted.length || !(square < Infinity)) return { square, freedom: Infinity };
    return { square, freedom: square ** 2 / counted.reduce((all, each) => all + each.square ** 2 / each.freedom, 0) };
  };

  const halfOf = (parts, confidence) => {
    const total = totalOf(parts);
    if (!(total.square < Infinity)) return Infinity;
    return total.square ? tQuantile(confidence, total.freedom) * Math.sqrt(total.square) : 0;
  };

  const MOST_LOG = 300;

  const around = (center, half) =>
    half < MOST_LOG ? [Math.exp(center - half), Math.exp(center + half)] : [0, Infinity];

  const notExcluded = (ratio, [lo, hi], floor) => [Math.min(lo, ratio / (1 + floor)), Math.max(hi, ratio * (1 + floor))];

  const unpaired = (first, second) => {
    const [before, after] = [levelOf(first), levelOf(second)];
    const log = before.center - after.center;
    const ratio = Math.exp(log);
    const own = [...partsOf(before, before.own), ...partsOf(after, after.own)];
    const usual = halfOf([...partsOf(before, before.usual), ...partsOf(after, after.usual)], by.confidence);
    const floor = usual < MOST_LOG ? Math.max(Math.exp(usual) - 1, first.off || 0, second.off || 0) : Infinity;
    const interval = wanted => around(log, halfOf(own, wanted));
    return { first, second, before, after, log, ratio, floor, interval, rounds: Math.min(before.rounds, after.rounds),
      workload: first.workload, build: first.build, between: wanted => notExcluded(ratio, interval(wanted), floor) };
  };

  const seenOf = (raw, shifted, confidence) => {
    const { first, second, before, after, ratio, floor, rounds } = raw;
    const [lo, hi] = raw.interval(by.confidence);
    const between = (shifted || raw).between(confidence);
    const together = before.kept && after.kept ? halfOf([before.own, after.own], by.confidence) : null;
    const sure = Number.isFinite(floor) && lo > 0;
    const sides = [first.check, second.check];
    const [arms, widening] = sides.reduce((a, b) =>
      Number(!b[0]) > Number(!a[0]) || (!b[0] === !a[0] && b[1] > a[1]) ? b : a);
    const notes = ["the rounds of the two runs are not paired: of how the machine differed between them, only a shift that "
      + "workloads have in common is noticed"];
    if (!arms) notes.push("no cell was measured twice (A/A), so nothing checks the noise that the intervals go by: they may be too narrow");
    if (rounds < by.leastRounds) {
      notes.push(`fewer than ${by.leastRounds} rounds: nothing can be called faster or slower`);
    } else if (!sure) {
      notes.push("the noise is unknown (too few processes, or values that do not vary): nothing can be called "
        + "faster or slower");
    }
    if (widening > 1) {
      notes.push("cells measured twice (A/A) differ by more than the processes' noise explains: intervals of "
        + `${first.clock} time are ${widening.toFixed(1)} times wider for it`);
    }
    return { ratio, lo, hi, between, floor: sure ? floor : null, rounds, notes, half: hi / ratio - 1,
      halfTogether: together === null ? null : together < MOST_LOG ? Math.exp(together) - 1 : Infinity,
      shift: shifted ? { basis: shifted.basis, ratio: Math.exp(shifted.center), lo: shifted.remaining(by.confidence)[0],
        hi: shifted.remaining(by.confidence)[1], without: raw.between(confidence) } : null };
  };

  // ---- The common shift of two runs: stats/common_shift.py

  const sumOf = numbers => numbers.reduce((all, each) => all + each, 0);
  const mean = numbers => sumOf(numbers) / numbers.length;

  const median = numbers => {
    const sorted = [...numbers].sort((a, b) => a - b);
    const middle = Math.floor(sorted.length / 2);
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  };

  const grouped = (items, keyOf) => {
    const groups = new Map();
    for (const each of items) groups.set(keyOf(each), [...groups.get(keyOf(each)) || [], each]);
    return groups;
  };

  const medianError = cells => {
    const times = (cells.length > 2 ? by.medianVariance : 1) / cells.length;
    return totalOf(["before", "after"].flatMap(name => {
      const sides = cells.map(each => each[name]);
      return [
        { square: mean(sides.map(each => each.own.square * each.kept)) * times,
          freedom: sides.reduce((all, each) => all + each.own.freedom, 0) },
        { square: mean(sides.map(each => each.machine.square)), freedom: mean(sides.map(each => each.machine.freedom)) }];
    }));
  };

  const blocksOf = ratios => {
    const usable = ratios.filter(each => each.rounds >= by.leastRounds && Number.isFinite(each.floor));
    return [...grouped(usable, each => JSON.stringify([each.workload, each.build])).values()].map(cells => ({
      workload: cells[0].workload, build: cells[0].build, center: median(cells.map(each => each.log)),
      error: medianError(cells) }));
  };

  const chanceOf = (block, way) => {
    const right = block.center * way > 0;
    if (!block.error.square) return right ? 0 : 1;
    const outside = tOutside(Math.abs(block.center) / Math.sqrt(block.error.square), block.error.freedom) / 2;
    return right ? outside : 1 - outside;
  };

  const choose = (n, k) => {
    let found = 1;
    for (let i = 1; i <= k; i += 1) found = found * (n - k + i) / i;
    return found;
  };

  const someMoved = chances => {
    const count = chances.length;
    const least = Math.floor(count / 2) + 1;
    const chance = [...chances].sort((a, b) => a - b)[least - 1];
    let atLeast = 0;
    for (let k = least; k <= count; k += 1) atLeast += choose(count, k) * chance ** k * (1 - chance) ** (count - k);
    return atLeast <= (1 - by.confidence) / 2;
  };

  const mostMoved = chances => {
    const majority = Math.floor(chances.length / 2) + 1;
    const largest = [...chances].sort((a, b) => a - b).slice(majority - 1);
    return Math.min(...largest.map((chance, place) => chance * largest.length / (place + 1))) <= (1 - by.confidence) / 2;
  };

  const movedTogether = (blocks, moved) => {
    const builds = [...grouped(blocks, each => each.build).values()];
    return builds.length > 0 && [1, -1].some(way =>
      builds.every(own => moved(own.map(each => chanceOf(each, way)))));
  };

  const workloadsOf = blocks => [...grouped(blocks, each => each.workload)].map(([workload, own]) => {
    const worst = own.map(each => each.error).reduce((a, b) => b.square > a.square ? b : a);
    return { workload, center: mean(own.map(each => each.center)), half: halfOf([worst], by.confidence) };
  });

  const weightedMedian = values => {
    const ordered = [...values].sort(([a, weight], [b, other]) => a - b || weight - other);
    const half = sumOf(ordered.map(([, weight]) => weight)) / 2;
    let [below, last, place] = [0, ordered[0][0], 0];
    for (const [value, weight] of ordered) {
      const middle = below + weight / 2;
      if (middle >= half) return middle === place ? value : last + (value - last) * (half - place) / (middle - place);
      [below, last, place] = [below + weight, value, middle];
    }
    return last;
  };

  const centreOf = blocks => {
    const scatterAround = center => Math.max(
      by.typicalScatter, (by.proportional + by.growth * Math.abs(center)) * Math.abs(center)) ** 2;
    const moved = [...grouped(blocks, each => each.workload).values()].map(own => (
      { own, center: mean(own.map(each => each.center)) }));
    const spread = scatterAround(median(moved.map(each => each.center)));
    const workloads = moved.map(each => (
      { ...each, weight: 1 / (mean(each.own.map(one => one.error.square)) + spread) }));
    const count = sumOf(workloads.map(each => each.weight)) ** 2 / sumOf(workloads.map(each => each.weight ** 2));
    const center = weightedMedian(workloads.map(each => [each.center, each.weight]));
    const weighted = workloads.flatMap(({ own, weight }) => own.map(each => [each, weight / own.length]));
    const distance = weightedMedian(weighted.map(([each, weight]) => [Math.abs(each.center - center), weight]))
      / by.normalMad;
    const errors = sumOf(weighted.map(([each, weight]) => weight * each.error.square))
      / sumOf(weighted.map(([, weight]) => weight));
    const typical = scatterAround(center);
    const freedom = Math.max((count - 1) / by.medianVariance, Math.min(count - 1, 1));
    const moderated = (by.prior * (typical + errors) + freedom * distance ** 2) / (by.prior + freedom);
    const total = Math.max(moderated, distance ** 2);
    return { center, scatter: Math.max(total - errors, typical),
      error: total * (1 + (by.medianVariance - 1) * Math.min(Math.max(count - 2, 0), 1)) / count,
      freedom: by.prior + freedom };
  };

  const commonShift = (ratios, clock) => {
    const blocks = blocksOf(ratios);
    if (!movedTogether(blocks, someMoved)) return null;
    const ofMost = movedTogether(blocks, mostMoved);
    const workloads = workloadsOf(blocks).sort((a, b) => a.center - b.center);
    if (workloads.length < by.enough) {
      return { clock, basis: "typical", center: mean(workloads.map(each => each.center)), workloads, ofMost,
        half: Math.hypot(...workloads.map(each => each.half)) / workloads.length };
    }
    const found = centreOf(blocks);
    return { clock, basis: "workloads", center: found.center, workloads, ofMost,
      half: halfOf([{ square: found.error, freedom: found.freedom }], by.confidence) };
  };

  // Return what remains of each ratio without the shift of the other workloads.
  const withoutShift = (ratios, basis, cells) => {
    const every = blocksOf(ratios);
    const names = [...new Set(every.map(each => each.workload))];
    if (basis === null && names.length === 1) return new Map();
    const blocks = basis !== null ? every : names.map(name => every.filter(each => each.workload === name).reduce(
      (least, each) => Math.abs(each.center) < Math.abs(least.center) ? each : least));
    const shifts = new Map(names.map(workload => {
      if (basis === "typical") return [workload, [0, { square: by.typicalShift ** 2, freedom: Infinity }]];
      const found = centreOf(blocks.filter(each => each.workload !== workload));
      return [workload, [found.center, { square: found.scatter + found.error, freedom: found.freedom }]];
    }));
    return new Map(ratios.filter(each => shifts.has(each.workload)).map(raw => {
      const [shift, error] = shifts.get(raw.workload);
      const [center, sides] = [raw.log - shift, [raw.before, raw.after]];
      const remaining = (confidence, together = confidence) => {
        const own = halfOf(sides.map(side => ({ square: side.own.square * side.kept, freedom: side.own.freedom })),
          confidence);
        return around(center, Math.sqrt(own ** 2 + halfOf([...sides.map(side => side.machine), error], together) ** 2));
      };
      const between = confidence => {
        const rest = notExcluded(Math.exp(center), remaining(confidence, confidence ** (cells / shifts.size)), raw.floor);
        const [lo, hi] = raw.between(confidence);
        if (basis === null && lo <= 1 && 1 <= hi) return [lo, hi];
        return [Math.min(lo, rest[0]), Math.max(hi, rest[1])];
      };
      return [raw, { basis: basis ?? "workloads", center, remaining, between }];
    }));
  };

  // ---- Verdicts: stats/verdict.py, report/table/judgement.py

  const beyond = ([lo, hi]) => lo > 0 ? Math.max(hi - 1, 1 / lo - 1) : Infinity;

  const wordFor = (ratio, [lo, hi], floor) => {
    if (!(lo <= 1 && 1 <= hi) && Math.abs(Math.log(ratio)) > Math.log1p(floor)) return lo > 1 ? "faster" : "slower";
    return null;
  };

  const judge = seen => {
    if (seen.floor === null || seen.rounds < by.leastRounds) return "cannot tell";
    const word = wordFor(seen.ratio, seen.between, seen.floor);
    if (word) return word;
    return Math.max(beyond(seen.between), seen.floor) <= by.margin ? "same" : "cannot tell";
  };

  // Whether it would be judged if the two runs had no common shift.
  const fromShift = seen => judge(seen) === "cannot tell" && seen.shift !== null
    && judge({ ...seen, between: seen.shift.without }) !== "cannot tell";

  const MARKED = "cannot tell ~";   // report/wording.py, FROM_SHIFT

  const verdictText = seen => fromShift(seen) ? MARKED : judge(seen);

  const wouldTell = seen => {
    if (judge(seen) !== "cannot tell") return "";
    return seen.floor === null ? "an A/A arm" : "--again";
  };

  // ---- Numbers: report/wording.py

  const exponentOf = number => Math.floor(Math.log10(Number(number.toExponential(2))));

  const ratioNumber = (ratio, extra = 0) => {
    const exponent = exponentOf(ratio);
    return ratio.toFixed((exponent === -1 || exponent === 0 ? 2 : Math.max(0, 2 - exponent)) + extra);
  };

  const intervalText = seen => {
    if (!Number.isFinite(seen.hi)) return `${ratioNumber(seen.ratio)}x`;
    const extra = seen.hi - seen.lo < 0.02 && Math.abs(Math.log10(seen.ratio)) < 0.2 ? 1 : 0;
    const [ratio, lo, hi] = [seen.ratio, seen.lo, seen.hi].map(each => ratioNumber(each, extra));
    return `${ratio}x [${lo}, ${hi}]`;
  };

  const percent = share => share > 0 && share * 100 < 0.1 ? "<0.1 %" : `${(share * 100).toFixed(1)} %`;

  const general3 = number => String(Number(number.toPrecision(3)));

  const general = number => String(Number(number.toPrecision(6)));

  const listText = items => items.length < 2 ? items.join("")
    : `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;

  // ---- The report of two runs: report/table/contrast.py, report/comparison.py

  const told = values => values.every(each => each !== null && each !== undefined);

  const unlikeWork = (left, right, a, b) => {
    const sizes = [left.work.size, right.work.size];
    const large = sizes.map(size => size === "large");
    const of = (cell, name) => cell ? cell[name] : null;
    const said = [
      ["payload", [left.work.payload, right.work.payload]], ["payloads", [left.work.payloads, right.work.payloads]],
      ["size", told(sizes) && large[0] !== large[1] ? sizes : []],
      ["units a task", [of(a, "units"), of(b, "units")]], ["tasks", [of(a, "tasks"), of(b, "tasks")]],
    ];
    for (const [what, pair] of said) {
      const judged = what === "payload" || what === "payloads" || told(pair) ? pair : [];
      if (judged.length && judged[0] !== judged[1]) {
        const first = told([judged[0]]) ? `${what} ${judged[0]}` : `no ${what}`;
        const second = told(judged) ? judged[1] : told([judged[1]]) ? `${what} ${judged[1]}` : `no ${what}`;
        return `not the same work: ${first} in ${left.label}, ${second} in ${right.label}`;
      }
    }
    return null;
  };

  const why = (left, right, a, b) => {
    if (!a || !b) return `only in ${(a ? left : right).label}`;
    const reasons = new Map();
    for (const [run, cell] of [[left, a], [right, b]]) {
      if (cell.absent) reasons.set(cell.absent, [...reasons.get(cell.absent) || [], `in ${run.label}`]);
    }
    return [...reasons].map(([reason, names]) => `${names.join(" and ")}: ${reason}`).join("; ")
      || "they share no round on this clock";
  };

  const sameBuilds = (left, right, labels) => {
    const [before, after] = [left, right].map(run => new Map(run.builds.map(each => [each[0], JSON.stringify(each)])));
    return [...labels].every(label => before.has(label) && before.get(label) === after.get(label));
  };

  const contrasts = (left, right) => {
    const [before, after] = [left, right].map(run => new Map(run.cells.map(cell => [cell.key, cell])));
    const shared = [...before.keys()].filter(key => after.has(key)).length;
    // The run with more looks has the higher confidence.
    const together = Math.max(left.together, right.together);
    const confidence = together ** (1 / Math.max(shared, 1));
    const all = [...new Set([...before.keys(), ...after.keys()])].map(key => {
      const [a, b] = [before.get(key), after.get(key)];
      const cell = b || a;
      const reason = unlikeWork(left, right, a, b);
      if (reason) return { cell, reason };
      if (a && b && a.level && b.level) return { cell, raw: unpaired(a, b), times: [a.time, b.time],
        processes: [a.processes, b.processes], notes: [a.notes, b.notes],
        lacking: [[left, a], [right, b]].flatMap(([run, side]) => side.lacking ? [`in ${run.label}: ${side.lacking}`] : []) };
      return { cell, reason: why(left, right, a, b) };
    });
    const shifts = [];
    for (const [clock, several] of grouped(all.filter(each => each.raw), each => each.cell.clock)) {
      const ratios = several.map(each => each.raw);
      const shift = commonShift(ratios, clock);
      if (shift) {
        shifts.push({ ...shift, sameBuilds: sameBuilds(left, right, new Set(ratios.map(each => each.build))),
          workers: [...new Set(several.map(each => each.cell.workers))].sort((a, b) => a - b) });
      }
      const rest = withoutShift(ratios, shift ? shift.basis : null, shared);
      for (const each of several) each.seen = seenOf(each.raw, rest.get(each.raw), confidence);
    }
    return { all, shifts };
  };

  const differences = (left, right) => {
    const notes = [];
    const machine = run => `${run.machine[0]} (${run.machine[1]} cores)`;
    if (machine(left) !== machine(right)) notes.push(`different machines: ${machine(left)} and ${machine(right)}`);
    const before = new Map(left.builds.map(build => [build[0], build]));
    for (const [label, version, executable] of right.builds) {
      const other = before.get(label);
      if (other && (other[1] !== version || other[2] !== executable)) {
        notes.push(`${label} is ${other[1]} (${other[2]}) in ${left.label}, ${version} (${executable}) in ${right.label}`);
      }
    }
    if (told([left.work.size, right.work.size]) && left.work.size !== right.work.size) {
      notes.push(`different sizes of the workloads: ${left.work.size} and ${right.work.size}`);
    }
    return notes;
  };

  const clockText = compared => {
    const clocks = new Set(compared.map(({ cell }) => cell.clock));
    return clocks.size > 1 ? "CPU time with one worker, wall time with more"
      : clocks.has("cpu") ? "CPU time" : "wall time";
  };

  const LONGEST = 16;

  const titles = (left, right) =>
    Math.max(left.label.length, right.label.length) <= LONGEST ? [left.label, right.label] : ["A", "B"];

  // report/table_sentences.py
  const spreadText = compared => {
    const counts = [...new Set(compared.flatMap(each => each.processes))].filter(each => each > 1 && each < by.sureRounds);
    if (!counts.length) return "";
    const listed = items => items.length > 1 ? `${items.slice(0, -1).join(", ")} or ${items[items.length - 1]}` : items[0];
    counts.sort((a, b) => a - b);
    const levels = counts.map(each => general3((1 - 2 ** (1 - each)) * 100));
    return ` ± is half of the 95 % interval of the median; with ${listed(counts)} processes it is half of their range, `
      + `which holds with ${listed(levels)} %.`;
  };

  const legend = (compared, left, right) => {
    const [first, second] = titles(left, right);
    const lines = first === "A" && left.label !== "A" ? [`A is ${left.label}, B is ${right.label}.`] : [];
    const margin = general(by.margin * 100);
    lines.push(`Times: medians over rounds; ${clockText(compared)}.${spreadText(compared)}`);
    lines.push(
      `Ratio: how many times as fast ${second} is as ${first}, with its 95 % interval: 0.80x takes 1.25 times as long. `
        + "It compares robust means over rounds, not these medians: where rounds differ, it is not their quotient.",
      `same: every difference above ${margin} % is excluded.`,
      `cannot tell: by the wider intervals of verdicts, a difference above ${margin} % is possible, and none above the `
        + "noise floor is significant.",
      ...compared.some(({ seen }) => fromShift(seen))
        ? [`${MARKED}: it would have a verdict if it were known that the two runs have no common shift.`] : [],
      "Verdicts use wider intervals than the printed ones: those of all cells hold at once with 95 % confidence.");
    if (compared.some(({ seen }) => hasRemainder(seen))) {
      lines.push("without shift: the ratio over what the other workloads have in common. Faster and slower hold whether none "
        + "or all of the shift is the machine's.");
    }
    if (compared.some(({ seen }) => wouldTell(seen) === "--again")) {
      lines.push("needs --again: both sides measured in turn. What more rounds of either run would add is not known, as "
        + "they would be of another hour.");
    }
    return lines;
  };

  const hasRemainder = seen => seen.shift !== null && seen.shift.basis === "workloads";

  const CLOCKS = { wall: "wall time", cpu: "CPU time" };

  const shiftText = (shift, left, right) => {
    const [lo, hi] = around(shift.center, shift.half);
    const ratio = intervalText({ ratio: Math.exp(shift.center), lo, hi });
    const cause = shift.sameBuilds
      ? "The builds look the same in both runs, so the machine may have changed, or the measured code"
      : "The machine may have changed, or the builds";
    const most = Math.max(...shift.workers);
    const cells = `with ${listText(shift.workers.map(String))} worker${most === 1 ? "" : "s"}`;
    const again = `To know, measure both sides in turn: \`gilscope compare ${left.label} ${right.label} --again\``;
    if (shift.basis === "typical") {
      const names = listText(shift.workloads.map(each => each.workload));
      const end = Math.exp(by.zConfidence * by.typicalShift);
      const [runs, itHas] = shift.workloads.length === 1 ? ["runs", "it has"] : ["run", "they have"];
      return `${CLOCKS[shift.clock]}: ${names} ${cells} ${runs} at ${ratio} the speed in ${right.label} that ${itHas} in `
        + `${left.label}. ${cause}. One or two workloads do not show which, so verdicts allow for a machine that `
        + `runs at ${ratioNumber(1 / end)}x to ${ratioNumber(end)}x its speed in the other run (at 95 %, with a typical `
        + `standard deviation of ${(by.typicalShift * 100).toFixed(0)} %). ${again}`;
    }
    const [slowest, fastest] = [shift.workloads[0], shift.workloads[shift.workloads.length - 1]].map(each =>
      `${ratioNumber(Math.exp(each.center))}x (${each.workload})`);
    const moved = shift.ofMost ? "most workloads moved the same way, in the median to"
      : "the workloads may have moved together, in the median to";
    return `${CLOCKS[shift.clock]} ${cells}: ${moved} ${ratio} the speed in ${right.label} that they have `
      + `in ${left.label}; all range from ${slowest} to ${fastest}. ${cause}: what cannot be told from this shift has no `
      + `verdict. ${again}`;
  };

  const floorText = compared => {
    const floors = compared.map(({ seen }) => seen.floor).filter(each => each !== null).sort((a, b) => a - b);
    if (!floors.length) return "";
    const [least, most] = [percent(floors[0]), percent(floors[floors.length - 1])];
    return `, noise floor ${least === most ? most : `${least.replace(/ %$/, "")} to ${most}`}`;
  };

  // report/footnotes.py
  const numbered = () => {
    const found = new Map();
    return {
      of: texts => texts.map(text => {
        if (!found.has(text)) found.set(text, found.size + 1);
        return found.get(text);
      }),
      texts: () => [...found.keys()],
    };
  };

  const tables = (compared, left, right) => {
    const groups = new Map();
    for (const each of compared) {
      const title = `${each.cell.title} on ${each.cell.build}`;
      groups.set(title, [...groups.get(title) || [], each]);
    }
    return [...groups].map(([title, rows]) => {
      const told = rows.map(({ seen }) => wouldTell(seen));
      const columns = [["model", false], ["N", true], ...titles(left, right).map(each => [each, true]), ["ratio", true]];
      const remainders = rows.some(({ seen }) => hasRemainder(seen));
      if (remainders) columns.push(["without shift", true]);
      columns.push(["verdict", false]);
      if (told.some(Boolean)) columns.push(["needs", false]);
      const marks = numbered();
      const cells = rows.map(({ cell, seen, times, notes, lacking }, i) => [
        [cell.model], [String(cell.workers), cell.workers], ...times.map((time, side) => [...time, marks.of(notes[side])]),
        [intervalText(seen), seen.ratio, marks.of(lacking)],
        ...remainders ? [hasRemainder(seen) ? [intervalText(seen.shift), seen.shift.ratio] : ["-"]] : [], [verdictText(seen)],
        ...told.some(Boolean) ? [[told[i]]] : []]);
      return { kind: "table", build: rows[0].cell.build, title: `${title}${floorText(rows)}, ${by.scope}`, columns, rows: cells,
        footnotes: marks.texts() };
    });
  };

  const apartText = (compared, left, right) => {
    const halves = compared.map(({ seen }) => seen.half).filter(Number.isFinite);
    const together = compared.map(({ seen }) => seen.halfTogether).filter(Number.isFinite);
    if (!halves.length) return "";
    const shown = all => `±${percent(Math.max(median(all), 0.001))}`;
    const instead = together.length && median(together) < 0.9 * median(halves)
      ? `, where one run with both would have ${shown(together)}` : "";
    return `not measured together: intervals of ${shown(halves)}${instead}; \`gilscope compare ${left.label} `
      + `${right.label} --again\` measures both sides again, in turn`;
  };

  // Whole workloads first: `totals` has the number of all their cells.
  const cellsText = (several, totals) => {
    const counts = totalsOf(several);
    const whole = [...counts].filter(([name, count]) => count > 1 && count === totals.get(name));
    const rest = several.filter(({ cell }) => !whole.some(([name]) => name === cell.name));
    const sum = whole.reduce((total, [, count]) => total + count, 0);
    return [
      ...whole.length ? [`all ${sum} cells of ${listText(whole.map(([name]) => name))}`] : [],
      ...rest.length ? [singleCellsText(rest)] : [],
    ].join("; ");
  };

  const totalsOf = several => {
    const counts = new Map();
    for (const { cell } of several) counts.set(cell.name, (counts.get(cell.name) || 0) + 1);
    return counts;
  };

  const singleCellsText = several => {
    const models = new Map();
    for (const { cell } of several) {
      const model = `${cell.model} on ${cell.build}`;
      if (!models.has(cell.name)) models.set(cell.name, new Map());
      const counts = models.get(cell.name);
      counts.set(model, [...counts.get(model) || [], cell.workers]);
    }
    const alike = new Map();
    for (const [workload, found] of models) {
      const text = [...found].map(([model, counts]) => `${model} (N = ${counts.join(", ")})`).join(", ");
      alike.set(text, [...alike.get(text) || [], workload]);
    }
    return [...alike].map(([text, workloads]) => `${text} of ${listText(workloads)}`).join("; ");
  };

  const notCompared = (missing, all) => {
    const totals = totalsOf(all);
    const reasons = new Map();
    for (const each of missing) reasons.set(each.reason, [...reasons.get(each.reason) || [], each]);
    return [...reasons].map(([reason, cells]) => `${cellsText(cells, totals)}: ${reason}`);
  };

  const inShort = (compared, missing) => {
    const words = compared.map(({ seen }) => judge(seen));
    const count = word => words.filter(each => each === word).length;
    if (!words.length) return "No cell could be compared.";
    const parts = ["faster", "slower"].filter(count).map(word => `${count(word)} ${word}`);
    if (count("same")) parts.push(`${count("same")} same (within ${general(by.margin * 100)} %)`);
    if (count("cannot tell")) {
      const shifted = compared.filter(({ seen }) => fromShift(seen)).length;
      parts.push(`${count("cannot tell")} cannot tell${shifted ? ` (${shifted} from a common shift)` : ""}`);
    }
    return `${words.length === 1 ? "1 cell" : `${words.length} cells`} compared: ${parts.join(", ")}.`
      + (missing.length ? ` ${missing.length} not compared.` : "");
  };

  const lackingText = compared => {
    const count = compared.filter(({ lacking }) => lacking.length).length;
    return count ? [`${count === 1 ? "1 ratio lacks" : `${count} ratios lack`} a session: see the footnotes.`] : [];
  };

  // What not both runs have begins with the label of the one that does: report/hosts/wording.py
  const ofBoth = (left, right, textsOf) => {
    const [first, second] = [left, right].map(run => new Set(textsOf(run)));
    return [...new Set([...first, ...second])].map(text => first.has(text) && second.has(text) ? text
      : `${(first.has(text) ? left : right).label}: ${text}`);
  };

  const report = (left, right) => {
    const { all, shifts } = contrasts(left, right);
    const [compared, missing] = [all.filter(each => each.seen), all.filter(each => !each.seen)];
    const sections = [{ kind: "heading", text: `${right.label} against ${left.label}` },
      ...[...differences(left, right), ...ofBoth(left, right, run => run.cautions),
        ...shifts.map(each => shiftText(each, left, right))].map(text => ({ kind: "banner", text }))];
    const notes = new Set(ofBoth(left, right, run => run.stopping ? [run.stopping] : []));
    for (const { seen } of compared) seen.notes.forEach(each => notes.add(each));
    if (compared.length) {
      sections.push({ kind: "lines", title: "", items: legend(compared, left, right) },
        ...tables(compared, left, right));
      const said = apartText(compared, left, right);
      if (said) notes.add(said);
    }
    if (notes.size) sections.push({ kind: "lines", title: "Notes", items: [...notes] });
    if (missing.length) sections.push({ kind: "lines", title: "Not compared", items: notCompared(missing, all) });
    sections.push({ kind: "lines", title: `In short, ${by.scope}`,
      items: [inShort(compared, missing), ...lackingText(compared)] });
    return sections;
  };

  // ---- The page

  const made = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  // Times and the ratio lead to the pyperf files that they are from; by keyboard they are below the tables.
  const table = (section, filesOf) => {
    const cell = ([text, sort, marks = []], i, row) => {
      const [, right] = section.columns[i];
      const found = made(i ? "td" : "th", { className: right ? "r" : "" });
      const file = i > 1 && sort !== undefined && sort !== null && filesOf(section, row)[Math.min(i, 3) - 2];
      found.append(file ? made("a", { href: file, tabIndex: -1, textContent: text }) : text,
        ...marks.map((mark, k) => made("sup", { textContent: k < marks.length - 1 ? `${mark} ` : mark })));
      if (!i) found.scope = "row";
      if (sort !== undefined && sort !== null) found.dataset.v = sort;
      return found;
    };
    const grid = made("table", { className: "sortable" }, made("caption", { textContent: section.title }),
      made("thead", {}, made("tr", {}, ...section.columns.map(([title, right]) =>
        made("th", { scope: "col", className: right ? "r" : "", textContent: title })))),
      made("tbody", {}, ...section.rows.map(row => made("tr", {}, ...row.map((each, i) => cell(each, i, row))))));
    const region = made("div", { className: "scroll", tabIndex: 0 }, grid);
    region.setAttribute("role", "region");
    region.setAttribute("aria-label", section.title);
    window.gilscopeSortable(grid);
    return region;
  };

  // Our sentences have commands in backticks; what has no partner stays.
  const words = text => {
    const parts = text.split("`");
    return parts.map((part, i) => i % 2 === 0 || i === parts.length - 1 ? part : made("code", { textContent: part }));
  };

  const footnotes = texts => texts.length
    ? [made("ol", { className: "footnotes" }, ...texts.map(text => made("li", {}, ...words(text))))] : [];

  const drawn = (section, filesOf) => {
    if (section.kind === "table") return [table(section, filesOf), ...footnotes(section.footnotes)];
    if (section.kind === "heading") return [made("h2", { textContent: section.text })];
    if (section.kind === "banner") return [made("p", { className: "banner" }, "Warning: ", ...words(section.text))];
    const list = made("ul", { className: "lines" }, ...section.items.map(text => made("li", {}, ...words(text))));
    return section.title ? [made("h3", { textContent: section.title }), list] : [list];
  };

  const form = document.getElementById("choose");
  const field = name => form.elements.namedItem(name);
  const said = form.querySelector("[role=status]");

  const loaded = id => new Promise((done, failed) => {
    if (window.gilscopeRuns[id]) return done(window.gilscopeRuns[id]);
    const script = made("script", { src: known.runs.find(each => each.id === id).file });
    script.addEventListener("load", () => done(window.gilscopeRuns[id]));
    script.addEventListener("error", () => failed(new Error(`cannot load ${script.src}`)));
    return document.head.append(script);
  });

  const choices = () => {
    const run = known.runs.find(each => each.id === field("run").value);
    const asNames = names => names.map(each => [each, each]);
    switch (field("what").value) {
      case "builds": return asNames(run.builds);
      case "models": return asNames(run.models);
      case "runs": return known.runs.map(each => [each.id, `${each.label} (${each.host}, ${each.day})`]);
      default: return known.hosts.map(each => [each.id, each.name]);
    }
  };

  const offer = (wanted = []) => {
    const found = choices();
    const fallback = field("what").value === "runs" ? [found[1] || found[0], found[0]] : [found[0], found[1] || found[0]];
    ["first", "second"].forEach((name, i) => {
      const select = field(name);
      select.replaceChildren(...found.map(([value, text]) => made("option", { value, textContent: text })));
      select.value = found.some(([value]) => value === wanted[i]) ? wanted[i] : fallback[i][0];
    });
    form.querySelectorAll("[data-for]").forEach(each => {
      each.hidden = !each.dataset.for.split(" ").includes(field("what").value);
    });
  };

  const link = (textContent, href) => made("a", { textContent, href });

  // Where the numbers of a run are from, and what measures them again.
  const source = run => [
    made("p", {}, "Numbers of ", link(run.label, run.page), ", as pyperf files: ",
      ...Object.entries(run.files).flatMap(([build, file], i) => [i ? ", " : "", link(build, file)]),
      ". To measure them again:"),
    made("pre", {}, made("code", { textContent: run.command }))];

  const show = async () => {
    const [what, first, second] = ["what", "first", "second"].map(name => field(name).value);
    if (first === second) {
      // An earlier comparison below would be of something else than the form says.
      ["compared", "from"].forEach(id => document.getElementById(id).replaceChildren());
      said.textContent = "Choose two that differ.";
      return;
    }
    const within = what === "builds" || what === "models";
    const runs = await Promise.all((within ? [field("run").value] : [first, second]).map(loaded));
    const sections = within ? runs[0][what === "builds" ? "ofBuilds" : "ofModels"][`${first},${second}`]
      : report(runs[0], runs[1]);
    const [left, right = left] = runs.map(each => each.files);
    const filesOf = {
      builds: () => [left[first], right[second]],
      models: (_, [[build]]) => [left[build], right[build]],
    }[what] || (({ build }) => [left[build], right[build]]);
    document.getElementById("compared").replaceChildren(...sections.flatMap(each => drawn(each, filesOf)));
    document.getElementById("from").replaceChildren(...runs.flatMap(source));
    said.textContent = sections[sections.length - 1].items.join(" ");
    const where = new URLSearchParams({ what, first, second });
    if (within) where.set("run", field("run").value);
    window.history.replaceState(null, "", `#${where}`);
  };

  const begin = () => {
    const wanted = new URLSearchParams(window.location.hash.slice(1));
    for (const name of ["what", "run"]) {
      if ([...field(name).options].some(option => option.value === wanted.get(name))) field(name).value = wanted.get(name);
    }
    offer([wanted.get("first"), wanted.get("second")]);
    if (wanted.has("first")) show();
  };

  if (!known.runs.length) return;
  form.hidden = false;
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("change", event => {
    if (event.target.name === "what" || event.target.name === "run") offer();
    show();
  });
  window.addEventListener("hashchange", begin);
  begin();
})();
