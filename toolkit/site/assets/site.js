// What a reader may do with a page beyond reading it: sort tables, enlarge figures.  All is there without it.
"use strict";

(() => {
  const number = cell => {
    const value = cell ? parseFloat(cell.dataset.v) : NaN;
    return Number.isNaN(value) ? null : value;
  };

  // Rows without a number come last, whichever way the others go.
  const compare = (column, up) => (first, second) => {
    const [a, b] = [first.cells[column], second.cells[column]];
    const [x, y] = [number(a), number(b)];
    if (x !== null && y !== null) return up ? x - y : y - x;
    if (x !== null || y !== null) return x !== null ? -1 : 1;
    return (up ? 1 : -1) * a.textContent.localeCompare(b.textContent);
  };

  const sortable = table => {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach(each => each.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(compare(column, up)));
      });
    });
  };

  const enlarging = () => {
    const links = document.querySelectorAll("a.enlarge");
    if (!links.length || !window.HTMLDialogElement) return;
    const dialog = document.createElement("dialog");
    const image = document.createElement("img");
    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "Close";
    dialog.append(close, image);
    document.body.append(dialog);
    dialog.addEventListener("click", () => dialog.close());
    links.forEach(link => link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      image.src = link.getAttribute("href");
      image.alt = link.querySelector("img").alt;
      dialog.setAttribute("aria-label", image.alt);
      dialog.showModal();
    }));
  };

  // What is unchecked goes from tables, and fades in pictures, whose places stay.  Rules of style, and no walk over
  // thousands of elements: a page may have a thousand cells.
  const filtering = form => {
    const boxes = [...form.querySelectorAll("input")];
    const said = form.querySelector("[role=status]");
    const rules = new CSSStyleSheet();
    const rows = [...document.querySelectorAll("main tbody tr[data-model]")];
    const apply = () => {
      const off = boxes.filter(box => !box.checked)
        .map(({ name, value }) => ({ name, at: `[data-${name}="${CSS.escape(value)}"]` }));
      rules.replaceSync(off.map(({ name, at }) =>
        `main :is(section, tr, .chart)${at}{display:none}` + (name === "model" ? `main svg g${at}{opacity:.1}` : ""))
        .join(""));
      const hidden = off.map(({ at }) => at).join(",");
      const shown = hidden ? rows.filter(row => !row.closest(hidden)).length : rows.length;
      said.textContent = hidden ? `${shown} of ${rows.length} rows are shown.` : "";
    };
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];
    form.hidden = false;
    form.addEventListener("change", apply);
    form.addEventListener("submit", event => event.preventDefault());
    apply();
  };

  window.gilscopeSortable = sortable;
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("form.filters").forEach(filtering);
  enlarging();
})();
