"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const make = (name, options = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "text") made.textContent = value;
      else if (key === "class") made.className = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const svg = (name, options, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "text") made.textContent = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };
  const bar = (share) => {
    const fill = make("span", { class: "bar-fill" });
    fill.style.width = `${Math.round(1000 * Math.max(0, Math.min(1, share))) / 10}%`;
    return make("span", { class: "bar-track" }, fill);
  };
  const number = (value) => (value === null ? "–" : value.toFixed(2));

  // --- The list of examples: only the rows in sight exist in the page. ---
  const [list, space, detail] = [at("list"), at("space"), at("detail")];
  const texts = data.ids.map((id, i) => {
    const tags = data.rows[i].filter(([, given]) => given === 1).map(([j]) => data.labels[j]);
    return [id, ...tags, ...data.cells[i]].join(" ").toLowerCase();
  });
  let shown = data.ids.map((_, i) => i);
  let selected = 0;
  let height = 52;
  const kindOf = (kind, entry) => {
    if (kind === "given") return entry[1] === 1;
    if (kind === "missing") return entry[1] !== 1 && entry[4] === 1;
    if (kind === "extra") return entry[1] === 1 && entry[4] === 0;
    return true;
  };
  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / height) - 4);
    const last = Math.min(shown.length, first + Math.ceil(list.clientHeight / height) + 8);
    const rows = [];
    for (let place = first; place < last; place += 1) {
      const i = shown[place];
      const tags = make("span", { class: "tags" });
      for (const [j, given] of data.rows[i]) {
        if (given !== 0) tags.append(make("span", { class: given === 1 ? "tag given" : "tag unknown", text: data.labels[j] }));
      }
      if (!tags.children.length) tags.append(make("span", { class: "tag", text: "no tag" }));
      const row = make("div", {
        class: "line example", role: "option", id: `example-${i}`, "aria-selected": String(place === selected),
        "aria-posinset": place + 1, "aria-setsize": shown.length,
      }, make("b", { text: data.ids[i] }), tags);
      row.style.top = `${place * height}px`;
      row.addEventListener("click", () => select(place));
      rows.push(row);
    }
    space.replaceChildren(...rows);
    if (shown.length) list.setAttribute("aria-activedescendant", `example-${shown[selected]}`);
    else list.removeAttribute("aria-activedescendant");
  };
  // The given labels and those that the model suggests, with the share of each among the given ones.
  const table = (i) => {
    const given = data.rows[i].filter((entry) => entry[1] === 1);
    const counted = given.length ? given : data.rows[i];
    const total = counted.reduce((sum, entry) => sum + entry[2], 0) || 1;
    const most = Math.max(...counted.map((entry) => entry[2])) || 1;
    const others = data.rows[i].filter((entry) => entry[1] !== 1 && (!given.length || entry[1] < 0 || entry[4] || (data.areProbabilities && entry[3] >= 0.05)));
    others.sort((a, b) => b[3] - a[3]);
    const head = make("tr", {}, ...["label", "importance", data.areProbabilities ? "probability" : "score"].map((text) => make("th", { scope: "col", text })));
    const body = make("tbody");
    for (const entry of [...given, ...others]) {
      const [j, known, importance, probability, predicted, tossup] = entry;
      const share = counted.includes(entry);
      body.append(make("tr", {},
        make("th", { scope: "row" }, data.labels[j], known === 1 ? (tossup ? make("small", { text: " ≈ next" }) : "") : make("small", { text: known === 0 ? " not given" : " unknown" })),
        make("td", { class: "bars" }, ...(share ? [bar(importance / most), `${Math.round((100 * importance) / total)} %`] : ["–"])),
        make("td", { text: `${number(probability)}${predicted ? " ✓" : ""}` })));
    }
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Labels of this row" }, make("table", {}, make("thead", {}, head), body));
  };
  // A long text is shown from its beginning; a click shows all of it.
  const whole = (text) => {
    if (text.length <= 240) return text || "(empty)";
    const rest = make("span", { text: text.slice(200), hidden: "" });
    const button = make("button", { type: "button", text: "… show all" });
    button.addEventListener("click", () => { rest.hidden = false; button.remove(); });
    return make("span", {}, text.slice(0, 200), rest, button);
  };
  const explain = () => {
    if (!shown.length) {
      detail.replaceChildren(make("p", { text: "No row fits. Change the search or the filter." }));
      return;
    }
    const i = shown[selected];
    const parts = [make("h3", { text: data.ids[i] }), table(i), make("p", { class: "count", text: "✓: the model gives this label. Importance: the probability that the label matters most among the given ones. ≈ next: the order to the next label is a toss-up." })];
    if (data.neighbors[i].length) {
      parts.push(make("h4", { text: "Neighbours that shaped it" }));
      const rows = make("tbody");
      for (const [other, weight] of data.neighbors[i]) {
        const button = make("button", { type: "button", text: data.ids[other] });
        button.addEventListener("click", () => goTo(other));
        const tags = data.rows[other].filter(([, given]) => given === 1).map(([j]) => data.labels[j]).join(", ");
        rows.append(make("tr", {}, make("td", {}, button), make("td", { text: number(weight) }), make("td", { class: "words", text: tags || "no tag" })));
      }
      parts.push(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Neighbours" }, make("table", {}, rows)));
    }
    parts.push(make("h4", { text: "Cells" }));
    const cells = make("dl");
    data.columns.forEach((name, k) => cells.append(make("dt", { text: name }), make("dd", {}, whole(data.cells[i][k]))));
    parts.push(cells);
    detail.replaceChildren(...parts);
  };
  const select = (place) => {
    selected = Math.max(0, Math.min(shown.length - 1, place));
    const top = selected * height;
    if (top < list.scrollTop) list.scrollTop = top;
    if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    draw();
    explain();
  };
  const goTo = (i) => {
    let place = shown.indexOf(i);
    if (place < 0) {
      for (const id of ["search", "label-filter", "kind-filter"]) at(id).value = "";
      filter();
      place = shown.indexOf(i);
    }
    select(place);
    list.focus();
  };
  const filter = () => {
    const wanted = at("search").value.trim().toLowerCase();
    const label = at("label-filter").value;
    const kind = at("kind-filter").value;
    shown = data.ids.map((_, i) => i).filter((i) => {
      if (wanted && !texts[i].includes(wanted)) return false;
      if (label === "" && kind === "") return true;
      return data.rows[i].some((entry) => (label === "" || entry[0] === Number(label)) && kindOf(kind, entry));
    });
    if (at("order").value === "surprise") shown.sort((a, b) => data.surprise[b] - data.surprise[a] || a - b);
    space.style.height = `${shown.length * height}px`;
    at("count").textContent = `${shown.length} of ${data.ids.length} rows`;
    selected = 0;
    list.scrollTop = 0;
    draw();
    explain();
  };
  list.addEventListener("scroll", draw);
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -shown.length, End: shown.length };
    if (!(event.key in steps)) return;
    event.preventDefault();
    select(selected + steps[event.key]);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      at("search").focus();
    } else if (event.key === "Escape" && event.target === at("search")) {
      at("search").value = "";
      filter();
      list.focus();
    }
  });
  at("search").addEventListener("input", filter);
  for (const id of ["label-filter", "kind-filter", "order"]) at(id).addEventListener("change", filter);
  for (const id of ["tools", "label-tools"]) {
    at(id).hidden = false;
    at(id).addEventListener("submit", (event) => event.preventDefault());
  }
  list.hidden = detail.hidden = at("label-pictures").hidden = false;
  const probe = make("div", { class: "line example" });
  space.append(probe);
  height = probe.getBoundingClientRect().height || height;
  filter();
  window.addEventListener("resize", draw);

  // --- One label: thresholds and telling features. ---
  const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${(50 + 380 * x).toFixed(1)} ${(210 - 190 * y).toFixed(1)}`).join(" ");
  const thresholds = (j) => {
    if (!data.curves.length) return [make("p", { text: "The model gives scores, not probabilities, so there are no thresholds to compare." })];
    const { predicted, hits } = data.curves[j];
    const relevant = data.relevant[j];
    const points = { precision: [], recall: [], f1: [] };
    data.thresholds.forEach((cut, k) => {
      if (predicted[k]) points.precision.push([cut, hits[k] / predicted[k]]);
      if (relevant) points.recall.push([cut, hits[k] / relevant]);
      if (predicted[k] + relevant) points.f1.push([cut, (2 * hits[k]) / (predicted[k] + relevant)]);
    });
    const picture = svg("svg", { viewBox: "0 0 450 250", role: "img", "aria-label": `Precision, recall and F1 of ${data.labels[j]} over the threshold` });
    for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
      picture.append(
        svg("line", { class: "thin", x1: 50 + 380 * tick, x2: 50 + 380 * tick, y1: 20, y2: 210 }),
        svg("text", { x: 50 + 380 * tick, y: 228, "text-anchor": "middle", text: tick }),
        svg("line", { class: "thin", x1: 50, x2: 430, y1: 210 - 190 * tick, y2: 210 - 190 * tick }),
        svg("text", { x: 44, y: 214 - 190 * tick, "text-anchor": "end", text: tick }));
    }
    for (const [name, line] of Object.entries(points)) picture.append(svg("path", { class: `curve ${name}`, d: path(line) }));
    picture.append(svg("text", { x: 240, y: 246, "text-anchor": "middle", text: "probability above which the label is predicted" }));
    const legend = make("p", { class: "legend" });
    for (const [name, colour, text] of [["precision", "#0072b2", "precision"], ["recall", "#d55e00", "recall"], ["f1", "#009e73", "F1"]]) {
      const line = make("i");
      line.style.background = colour;
      legend.append(make("span", { "data-line": name }, line, text));
    }
    const best = points.f1.reduce((a, b) => (b[1] > a[1] ? b : a), [0, -1]);
    if (best[1] >= 0) legend.append(make("span", { text: `best F1 ${number(best[1])} at ${best[0]}` }));
    return [picture, legend];
  };
  const telling = (j) => {
    const features = data.telling[j];
    if (!features.length) return [make("p", { text: "No feature has an effect." })];
    const largest = Math.max(...features.map(([, effect]) => Math.abs(effect)));
    const grid = make("div", { class: "effects" });
    for (const [name, effect] of features) {
      const share = Math.abs(effect) / largest;
      const [minus, plus] = [make("span", { class: "minus" }, bar(effect < 0 ? share : 0)), make("span", {}, bar(effect > 0 ? share : 0))];
      grid.append(make("span", { class: "name", text: name }), make("span", { class: "side", title: `${effect > 0 ? "for" : "against"} the label, ${effect.toFixed(3)}` }, minus, plus));
    }
    return [make("p", { text: "Left: against the label. Right: for it." }), grid];
  };
  const chooseLabel = (j) => {
    at("label").value = String(j);
    at("thresholds").replaceChildren(...thresholds(j));
    at("telling").replaceChildren(...telling(j));
    for (const row of document.querySelectorAll("table.labels tbody tr")) row.setAttribute("aria-selected", String(Number(row.dataset.label) === j));
  };
  at("label").addEventListener("change", () => chooseLabel(Number(at("label").value)));
  for (const row of document.querySelectorAll("table.labels tbody tr")) row.addEventListener("click", () => chooseLabel(Number(row.dataset.label)));
  chooseLabel(Number(at("label").value));
})();
