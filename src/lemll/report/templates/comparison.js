"use strict";
(() => {
  const data = JSON.parse(document.getElementById("entries").textContent);
  const tables = [...document.querySelectorAll("table.data, table.heat")];
  const value = (cell) => {
    const number = cell.dataset.v === undefined ? parseFloat(cell.textContent) : Number(cell.dataset.v);
    return Number.isNaN(number) ? null : number;
  };
  const compare = (column, sign) => (a, b) => {
    if (column === 0) return sign * a.cells[0].textContent.localeCompare(b.cells[0].textContent);
    const [x, y] = [value(a.cells[column]), value(b.cells[column])];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (x - y);
  };
  for (const table of document.querySelectorAll("table.data")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(compare(column, sign)));
      });
    });
  }
  const filter = document.getElementById("filter");
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const table of tables) {
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      }
    }
    if (tables.length) shown = [...tables[0].tBodies[0].rows].filter((row) => !row.hidden).length;
    document.getElementById("shown").textContent = wanted ? `${shown} of ${data.datasets.length} data sets` : "";
  };
  filter.addEventListener("input", show);
  for (const box of document.querySelectorAll("input[data-method]")) {
    box.addEventListener("change", () => {
      for (const cell of document.querySelectorAll(`[data-c="${Number(box.dataset.method)}"]`)) cell.hidden = !box.checked;
    });
  }
  document.getElementById("tools").hidden = false;
  document.getElementById("tools").addEventListener("submit", (event) => event.preventDefault());
  const dialog = document.getElementById("record");
  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };
  const open = (key) => {
    const [dataset, method] = key.split(",").map(Number);
    document.getElementById("record-title").textContent = `${data.methods[method]} on ${data.datasets[dataset]}`;
    const table = dialog.querySelector("table");
    const head = document.createElement("tr");
    head.append(...["split", "status", ...data.metrics, "seconds", "chosen", "record"].map((text) => element("th", text)));
    table.tHead.replaceChildren(head);
    const rows = (data.entries[key] || []).map(([setting, status, values, seconds, chosen, id]) => {
      const row = document.createElement("tr");
      const link = element("a", `${id.slice(0, 10)}…`);
      link.href = `${data.folder}/${id}.json`;
      const last = document.createElement("td");
      last.append(link);
      row.append(...[setting, status, ...values.map((at) => (at === null ? "—" : at.toFixed(4))), seconds, chosen].map((at) => element("td", at)), last);
      return row;
    });
    table.tBodies[0].replaceChildren(...rows);
    dialog.showModal();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-e]");
    if (button) open(button.dataset.e);
  });
  document.getElementById("close").addEventListener("click", () => dialog.close());
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details")) part.open = true;
  });
})();
