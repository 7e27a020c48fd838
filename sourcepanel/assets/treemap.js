// @ts-check
/**
 * The treemap as one stop of the Tab key: arrows go to the neighbour on that side, Home and End to the first and the
 * last file; Enter follows the link as always. A line below tells what the pointer or the focus is on.
 *
 * Events are caught on the document, so a theme may swap the page; without this script each file is a stop.
 */
(() => {
  const SIDES = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });

  /** @param {EventTarget | null} target */
  const cellOf = (target) => (target instanceof Element ? /** @type {SVGAElement | null} */ (target.closest(".treemap__file")) : null);
  /** @param {Element} cell */
  const cellsOf = (cell) => /** @type {SVGAElement[]} */ ([...(cell.closest(".treemap")?.querySelectorAll(".treemap__file") ?? [])]);

  /** Only one file is a stop. @param {SVGAElement[]} cells @param {SVGAElement} stop */
  function rove(cells, stop) {
    for (const cell of cells) cell.setAttribute("tabindex", cell === stop ? "0" : "-1");
  }

  /** The nearest file on a side: what lies straight ahead before what lies aslant. @param {SVGAElement} from @param {[number, number]} side */
  function neighbour(from, [dx, dy]) {
    const middle = (/** @type {Element} */ one) => {
      const { left, top, width, height } = one.getBoundingClientRect();
      return [left + width / 2, top + height / 2];
    };
    const [x, y] = middle(from);
    let best = from;
    let least = Infinity;
    for (const cell of cellsOf(from)) {
      const [a, b] = middle(cell);
      const [ahead, aslant] = dx ? [(a - x) * dx, Math.abs(b - y)] : [(b - y) * dy, Math.abs(a - x)];
      if (ahead > 0.5 && ahead + 2 * aslant < least) [best, least] = [cell, ahead + 2 * aslant];
    }
    return best;
  }

  /** @param {Event} event */
  function tell({ target }) {
    const cell = cellOf(target);
    const map = cell?.closest(".coverage__map");
    if (!cell || !map) return;
    let line = map.nextElementSibling;
    if (!line?.matches(".treemap__told")) {
      line = document.createElement("p");
      line.className = "treemap__told";
      // The name of the link says the same to who cannot see it.
      line.setAttribute("aria-hidden", "true");
      map.after(line);
    }
    line.textContent = cell.getAttribute("aria-label");
  }

  function prepare() {
    for (const map of document.querySelectorAll(".treemap")) {
      const cells = /** @type {SVGAElement[]} */ ([...map.querySelectorAll(".treemap__file")]);
      if (cells.length && !cells.some((cell) => cell.hasAttribute("tabindex"))) rove(cells, cells[0]);
    }
  }

  prepare();
  // The page that holds the map loads this once more each time it is swapped in.
  if (Reflect.get(globalThis, "treemapReady")) return;
  Reflect.set(globalThis, "treemapReady", true);
  document.addEventListener("pointerover", tell);
  document.addEventListener("focusin", (event) => {
    const cell = cellOf(event.target);
    if (cell) rove(cellsOf(cell), cell);
    tell(event);
  });
  document.addEventListener("keydown", (event) => {
    const cell = cellOf(event.target);
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const cells = cellsOf(cell);
    const to = event.key === "Home" ? cells[0] : event.key === "End" ? cells[cells.length - 1] : SIDES[event.key] && neighbour(cell, SIDES[event.key]);
    if (!to) return;
    event.preventDefault();
    event.stopPropagation();
    to.focus();
  });
})();
