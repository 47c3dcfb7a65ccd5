// The panes of a listing: the row that is chosen by a click or a key marks what belongs to it in the others.
for (const box of document.querySelectorAll(".listing")) {
  const panes = [...box.querySelectorAll("ol")];
  const names = box.dataset.names.split("\n");
  const status = box.querySelector("[role=status]");
  const rows = new Map();
  const current = new Map();
  let marked = [];
  const of = (name, value) => (value === undefined ? [] : rows.get(name + value) || []);
  const note = (key, row) => (rows.has(key) ? rows.get(key).push(row) : rows.set(key, [row]));
  const show = (pane, row) => {
    current.set(pane, row);
    row.id ||= `row-${panes.indexOf(pane)}-${[...pane.children].indexOf(row)}-of-${box.parentNode.id}`;
    pane.setAttribute("aria-activedescendant", row.id);
    const [top, bottom] = [row.offsetTop, row.offsetTop + row.offsetHeight];
    if (top < pane.scrollTop || bottom > pane.scrollTop + pane.clientHeight) {
      pane.scrollTop = top - pane.clientHeight / 3;
    }
  };
  const choose = (row, said = true) => {
    for (const old of marked) {
      old.classList.remove("on", "near");
      old.removeAttribute("aria-selected");
    }
    const { k, q } = row.dataset;
    const [near, same] = [of("k", k), of("q", q)];
    marked = [row, ...same, ...near];
    for (const other of near) other.classList.add("near");
    for (const other of [row, ...same]) other.classList.add("on");
    for (const other of marked) other.setAttribute("aria-selected", "true");
    const found = [];
    for (const pane of panes) {
      const inside = (other) => other.parentNode === pane;
      const first = inside(row) ? row : same.find(inside) || near.find(inside);
      if (first) show(pane, first);
      const count = new Set(marked.filter(inside)).size;
      if (count && !inside(row)) found.push(`${count} ${count === 1 ? "row" : "rows"} of ${pane.getAttribute("aria-label")}`);
    }
    if (said) status.textContent = [names[k], found.join(", ") || "nothing in the other panes"].filter(Boolean).join(": ");
  };
  const move = (pane, row, by) => {
    let next = row;
    for (let left = Math.abs(by); left; --left) {
      const beside = by < 0 ? next.previousElementSibling : next.nextElementSibling;
      if (!beside) break;
      next = beside;
    }
    choose(next);
  };
  const begin = () => {
    if (rows.size || !box.open) return;
    for (const pane of panes) {
      pane.setAttribute("role", "listbox");
      pane.setAttribute("aria-multiselectable", "true");
      for (const row of pane.children) {
        row.setAttribute("role", "option");
        const { k, q } = row.dataset;
        if (k !== undefined) note("k" + k, row);
        if (q !== undefined) note("q" + q, row);
      }
      pane.addEventListener("click", (event) => {
        const row = event.target.closest("li");
        if (row) choose(row);
      });
      pane.addEventListener("keydown", (event) => {
        const row = current.get(pane) || pane.firstElementChild;
        const page = Math.max(1, Math.floor(pane.clientHeight / row.offsetHeight) - 1);
        const all = pane.children.length;
        const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -all, End: all }[event.key];
        if (!by || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        move(pane, row, by);
      });
    }
    const last = panes[panes.length - 1];
    choose(last.children[last.dataset.first] || last.firstElementChild, false);
  };
  box.addEventListener("toggle", begin);
  // What is folded has no places to scroll to.
  for (const fold of box.querySelectorAll(".pane")) {
    fold.addEventListener("toggle", () => {
      const pane = fold.querySelector("ol");
      if (fold.open && current.has(pane)) show(pane, current.get(pane));
    });
  }
  begin();
  const follow = () => {
    const row = document.getElementById(location.hash.slice(1));
    if (!row || !row.matches("li") || !box.contains(row)) return;
    box.open = true;
    row.closest(".pane").open = true;
    begin();
    choose(row);
  };
  addEventListener("hashchange", follow);
  follow();
}
