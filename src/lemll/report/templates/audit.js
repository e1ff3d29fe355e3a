"use strict";
(() => {
  const data = JSON.parse(document.getElementById("content").textContent);
  const { issues, labels, rows } = data;
  const total = issues.row.length;
  const HEIGHT = 52;
  const get = (id) => document.getElementById(id);
  const [list, space, detail] = [get("list"), get("space"), get("detail")];
  const decisions = new Array(total).fill("");
  const cellKey = (number) => `${issues.row[number]}/${issues.label[number]}`;

  // A browser may forbid storage for files; then decisions last as long as the page is open.
  const storageKey = (() => {
    let hash = 0;
    for (const part of [document.title, total, labels.join("\n"), issues.row.join(), issues.label.join()]) {
      for (const sign of String(part)) hash = (Math.imul(hash, 31) + sign.codePointAt(0)) | 0;
    }
    return `lemll-audit-${hash}`;
  })();
  try {
    const saved = JSON.parse(localStorage.getItem(storageKey) || "{}");
    for (let i = 0; i < total; i++) {
      const found = saved[cellKey(i)];
      if (found === "accept" || found === "reject") decisions[i] = found;
    }
  } catch { /* nothing was saved */ }
  const save = () => {
    const kept = {};
    decisions.forEach((decision, i) => { if (decision) kept[cellKey(i)] = decision; });
    try { localStorage.setItem(storageKey, JSON.stringify(kept)); } catch { /* not allowed */ }
  };

  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const kindOf = (i) => (issues.given[i] ? "wrong" : "missing");
  const percent = (value) => (value === null ? "not known" : `${(100 * value).toFixed(1)} %`);

  const scoreOf = (i) => (data.calibrated ? percent(issues.score[i]) : issues.score[i].toFixed(3));

  // Text to search, made once per row when it is needed first.
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, `${rows[row].id}\n${rows[row].values.join("\n")}`.toLowerCase());
    return texts.get(row);
  };

  let shown = [];
  let chosen = -1; // the number of an issue, not its place in the list
  const place = () => shown.indexOf(chosen);

  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 5);
    const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / HEIGHT) + 5);
    const made = document.createDocumentFragment();
    for (let at = first; at < last; at++) {
      const i = shown[at];
      const line = element("div", undefined, "line issue");
      line.id = `issue-${i}`;
      line.style.top = `${at * HEIGHT}px`;
      line.setAttribute("role", "option");
      line.setAttribute("aria-selected", String(i === chosen));
      line.setAttribute("aria-setsize", shown.length);
      line.setAttribute("aria-posinset", at + 1);
      line.dataset.issue = i;
      line.append(
        element("span", labels[issues.label[i]], "name"),
        element("span", scoreOf(i), "score"),
        element("span", rows[issues.row[i]].id, "where"),
      );
      const mark = element("span", undefined, "mark");
      mark.append(decisions[i]
        ? element("span", decisions[i] === "accept" ? "accepted" : "rejected", decisions[i])
        : element("span", kindOf(i), kindOf(i)));
      line.append(mark);
      made.append(line);
    }
    space.replaceChildren(made);
    list.setAttribute("aria-activedescendant", chosen >= 0 ? `issue-${chosen}` : "");
  };

  const status = () => {
    const accepted = decisions.filter((decision) => decision === "accept").length;
    const rejected = decisions.filter((decision) => decision === "reject").length;
    const likely = data.likely ? `; the first ${data.likely} are more likely wrong than right` : "";
    get("status").textContent = `${shown.length} of ${total} doubtful tags shown${likely}; ${accepted} accepted, ${rejected} rejected`;
  };

  const chips = (numbers, own) => {
    const line = element("p");
    for (const j of numbers) line.append(element("span", labels[j], j === own ? "tag this" : "tag"));
    if (!numbers.length) line.append("no tags");
    return line;
  };

  const facts = (pairs) => {
    const table = element("table", undefined, "facts");
    const body = element("tbody");
    for (const [name, value] of pairs) {
      const line = element("tr");
      const cell = element("td");
      cell.append(value);
      line.append(element("th", name), cell);
      body.append(line);
    }
    table.append(body);
    return table;
  };

  const measured = (value, text) => {
    const line = element("span", undefined, "figure");
    if (value !== null) {
      const [track, fill] = [element("span", undefined, "bar-track"), element("span", undefined, "bar-fill")];
      fill.style.width = `${100 * Math.max(0, Math.min(1, value))}%`;
      track.append(fill);
      line.append(track);
    }
    line.append(text || percent(value));
    return line;
  };

  // A long text is shown from its beginning; a click shows all of it.
  const whole = (text) => {
    if (text.length <= 600) return text;
    const [found, button] = [element("span", text.slice(0, 500)), element("button", "… show all")];
    button.type = "button";
    button.addEventListener("click", () => { found.textContent = text; });
    found.append(button);
    return found;
  };
  const features = (row) => facts(data.columns.map((name, k) => [name, whole(rows[row].values[k])]));

  const describe = () => {
    detail.replaceChildren();
    if (chosen < 0) {
      detail.append(element("p", "No tag matches these filters.", "empty"));
      return;
    }
    const i = chosen;
    const [row, own] = [issues.row[i], issues.label[i]];
    const heading = element("h2");
    heading.append(element("span", labels[own]), " may be ", element("span", kindOf(i), kindOf(i)), " in ", element("span", rows[row].id));
    detail.append(heading);
    const buttons = element("div", undefined, "buttons");
    for (const [decision, text] of [["accept", issues.given[i] ? "Accept: remove it (a)" : "Accept: add it (a)"], ["reject", "Reject: leave it (r)"]]) {
      const button = element("button", text);
      button.type = "button";
      button.id = decision;
      button.setAttribute("aria-pressed", String(decisions[i] === decision));
      button.addEventListener("click", () => {
        decide(decisions[i] === decision ? "" : decision);
        if (chosen >= 0) get(decision).focus({ preventScroll: true });
      });
      buttons.append(button);
    }
    detail.append(buttons);
    detail.append(facts([
      [`score: ${kindOf(i)}`, measured(issues.score[i], scoreOf(i))],
      ["probability of the tag", measured(issues.probability[i])],
      ["from the features alone", measured(issues.out_of_fold[i])],
      ["nearest rows with the tag", measured(issues.neighbour_share[i])],
      ["numerical label (-1 to 1)", issues.numerical_label[i] === null ? "not known" : issues.numerical_label[i].toFixed(2)],
    ]));
    detail.append(element("h3", "Tags of this row"), chips(rows[row].tags, own));
    if (rows[row].unknown.length) detail.append(element("p", `Not known: ${rows[row].unknown.map((j) => labels[j]).join(", ")}`));
    if (data.columns.length) detail.append(element("h3", "Features"), features(row));
    if (data.hidden_columns) detail.append(element("p", `${data.hidden_columns} more columns are not in this page.`));
    const near = data.near[row] || [];
    if (near.length) detail.append(element("h3", "Nearest rows"));
    for (const other of near) {
      const more = element("details");
      const has = rows[other].unknown.includes(own) ? "not known" : rows[other].tags.includes(own) ? "has the tag" : "does not have the tag";
      more.append(element("summary", `${rows[other].id}: ${has}`), chips(rows[other].tags, own), features(other));
      detail.append(more);
    }
    detail.scrollTop = 0;
  };

  const choose = (at) => {
    if (!shown.length) { chosen = -1; draw(); describe(); return; }
    at = Math.max(0, Math.min(shown.length - 1, at));
    chosen = shown[at];
    const top = at * HEIGHT;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + HEIGHT - list.clientHeight;
    draw();
    describe();
  };

  const past = [];
  const decide = (decision) => {
    if (chosen < 0 || decisions[chosen] === decision) return;
    past.push([chosen, decisions[chosen]]);
    decisions[chosen] = decision;
    save();
    const at = place();
    if (get("state").value) filter(at);
    else if (decision) choose(at + 1);
    else { draw(); describe(); }
    status();
  };
  // The last decision is taken back, and its tag is shown again, also if the filters hid it.
  const undo = () => {
    if (!past.length) return;
    const [last, before] = past.pop();
    decisions[last] = before;
    save();
    filter();
    if (!shown.includes(last)) {
      for (const id of ["kind", "label", "state", "search"]) get(id).value = "";
      filter();
    }
    choose(shown.indexOf(last));
  };

  const filter = (at) => {
    const [kind, label, state] = [get("kind").value, get("label").value, get("state").value];
    const wanted = get("search").value.trim().toLowerCase();
    shown = [];
    for (let i = 0; i < total; i++) {
      if (kind === "likely" ? i >= data.likely : kind !== "" && issues.given[i] !== Number(kind)) continue;
      if (label !== "" && issues.label[i] !== Number(label)) continue;
      if (state === "open" ? decisions[i] : state && decisions[i] !== state) continue;
      if (wanted && !textOf(issues.row[i]).includes(wanted)) continue;
      shown.push(i);
    }
    space.style.height = `${shown.length * HEIGHT}px`;
    choose(at === undefined ? Math.max(0, place()) : at);
    status();
  };

  // A spreadsheet must not read a name as a formula, so such names begin with an apostrophe.
  const cell = (value) => {
    let text = String(value);
    if (/^[=+\-@\t\r＝＋－＠]/.test(text) && !/^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$/.test(text)) text = `'${text}`;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const exported = () => {
    const lines = [["row", "id", "fingerprint", "label", "given", "suggested", "kind", "score", "decision"]];
    decisions.forEach((decision, i) => {
      const row = rows[issues.row[i]];
      if (decision) lines.push([issues.row[i], row.id, row.fingerprint, labels[issues.label[i]], issues.given[i], 1 - issues.given[i], kindOf(i), issues.score[i], decision]);
    });
    return lines.map((line) => `${line.map(cell).join(",")}\n`).join("");
  };
  const download = () => {
    const link = element("a");
    link.href = URL.createObjectURL(new Blob([exported()], { type: "text/csv" }));
    link.download = "decisions.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  list.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  list.addEventListener("click", (event) => {
    const line = event.target.closest(".issue");
    if (line) choose(shown.indexOf(Number(line.dataset.issue)));
  });
  for (const id of ["kind", "label", "state"]) get(id).addEventListener("change", () => filter(0));
  let waiting;
  get("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => filter(0), 80);
  });
  get("tools").addEventListener("submit", (event) => event.preventDefault());
  get("export").addEventListener("click", download);
  addEventListener("resize", draw);
  const pageful = () => Math.max(1, Math.floor(list.clientHeight / HEIGHT) - 1);
  const keys = {
    ArrowDown: () => choose(place() + 1), j: () => choose(place() + 1),
    ArrowUp: () => choose(place() - 1), k: () => choose(place() - 1),
    PageDown: () => choose(place() + pageful()), PageUp: () => choose(place() - pageful()),
    Home: () => choose(0), End: () => choose(shown.length - 1),
    a: () => decide("accept"), r: () => decide("reject"), u: undo,
    e: download, "/": () => get("search").focus(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest("input, select, textarea");
    if (field) {
      if (event.key === "Escape") { field.blur(); list.focus(); }
      return;
    }
    // Buttons and summaries keep the keys that open and scroll them.
    const action = keys[event.key];
    if (!action || (event.target.closest("#detail") && /^(Arrow|Page|Home|End)/.test(event.key))) return;
    event.preventDefault();
    action();
  });
  filter(0);
  list.focus();
})();
