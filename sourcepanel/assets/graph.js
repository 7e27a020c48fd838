// @ts-check
/**
 * The graph of notes: neighbours of what is pointed at, zoom and pan, arrow keys. All else stands in the page already:
 * links, labels, and the boxes that hide kinds work without this script.
 *
 * Everything is heard on the document, once, however many pages a theme swaps in; what belongs to a drawing is kept
 * with its element and goes with it.
 */
(() => {
  /** @typedef {{ home: number[], box: number[], deep: boolean, dot: number, fingers: Map<number, Touched> }} Shown */
  /** @typedef {{ x: number, y: number }} Touched */
  const MOST = 16;
  /** @type {WeakMap<SVGSVGElement, Shown>} */
  const known = new WeakMap();
  if (SourcePanel.graph) return SourcePanel.graph.show();

  /** @param {EventTarget | null} target @returns {SVGSVGElement | null} */
  const drawing = (target) => (target instanceof Element ? target.closest(".graph__svg") : null);
  /** @param {EventTarget | null} target @returns {SVGAElement | null} */
  const node = (target) => (target instanceof Element ? target.closest(".graph__node") : null);
  /** @param {SVGSVGElement} svg @returns {SVGAElement[]} */
  const nodes = (svg) => [...svg.querySelectorAll(":scope > a")].map((one) => /** @type {SVGAElement} */ (one));
  /** @param {string | null} text */
  const numbers = (text) => (text ? text.split(" ").map(Number) : []);

  /** @param {SVGSVGElement} svg */
  function shown(svg) {
    const there = known.get(svg);
    if (there) return there;
    const home = numbers(svg.getAttribute("viewBox"));
    const made = { home, box: home, deep: false, dot: Number(svg.style.getPropertyValue("--dot")), fingers: new Map() };
    known.set(svg, made);
    return made;
  }

  /** Show this part of the drawing; sizes on the screen stay. @param {SVGSVGElement} svg @param {number[]} box */
  function look(svg, box) {
    const state = shown(svg);
    const [left, top, width, height] = state.home;
    const zoom = Math.min(MOST, Math.max(1, width / box[2]));
    const [w, h] = [width / zoom, height / zoom];
    // The middle stays inside the drawing.
    const x = Math.min(left + width - w / 2, Math.max(left - w / 2, box[0] + (box[2] - w) / 2));
    const y = Math.min(top + height - h / 2, Math.max(top - h / 2, box[1] + (box[3] - h) / 2));
    state.box = zoom === 1 ? state.home : [x, y, w, h];
    svg.setAttribute("viewBox", state.box.join(" "));
    svg.dataset.zoom = String(zoom < 2 ? 1 : zoom < 4 ? 2 : zoom < 8 ? 4 : 8);
    svg.toggleAttribute("data-moved", zoom > 1);
    svg.style.setProperty("--dot", String(Math.min(1, state.dot * zoom)));
    size(svg);
  }

  /** @param {SVGSVGElement} svg */
  function size(svg) {
    const scale = svg.getScreenCTM()?.a;
    if (scale) svg.style.setProperty("--u", (1 / scale).toFixed(4));
  }

  /** Zoom about a point of the screen, or the middle. @param {SVGSVGElement} svg @param {number} by @param {Touched} [at] */
  function zoom(svg, by, at) {
    const [x, y, w, h] = shown(svg).box;
    const matrix = svg.getScreenCTM();
    const point = at && matrix ? new DOMPoint(at.x, at.y).matrixTransform(matrix.inverse()) : { x: x + w / 2, y: y + h / 2 };
    look(svg, [point.x - (point.x - x) / by, point.y - (point.y - y) / by, w / by, h / by]);
  }

  /** Mark a node and what it is joined to; null takes the marks away. @param {SVGSVGElement} svg @param {SVGAElement | null} one */
  function light(svg, one) {
    for (const old of svg.querySelectorAll(".graph__near")) old.classList.remove("graph__near");
    svg.toggleAttribute("data-lit", !!one);
    const path = svg.querySelector(".graph__lit");
    if (!one) return path?.setAttribute("d", "");
    const all = nodes(svg);
    const near = numbers(one.getAttribute("data-to")).map((n) => all[n]).filter((other) => other && seen(other));
    for (const other of [one, ...near]) other.classList.add("graph__near");
    const here = place(one);
    path?.setAttribute("d", near.map((other) => `M${here.x} ${here.y}L${place(other).x} ${place(other).y}`).join(""));
  }

  /** @param {SVGAElement} one */
  const seen = (one) => getComputedStyle(one).display !== "none";

  /** @param {SVGAElement} one @returns {Touched} */
  function place(one) {
    const { e, f } = /** @type {SVGTransform} */ (one.transform.baseVal.consolidate()).matrix;
    return { x: e, y: f };
  }

  /** One stop for Tab in each drawing; arrows walk the rest. @param {SVGAElement} one */
  function stop(one) {
    const svg = drawing(one);
    if (!svg) return;
    for (const other of nodes(svg)) other.setAttribute("tabindex", other === one ? "0" : "-1");
  }

  /** The nearest node in a direction. @param {SVGAElement} from @param {string} key */
  function next(from, key) {
    const svg = /** @type {SVGSVGElement} */ (drawing(from));
    const here = place(from);
    const turn = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    if (!turn) return null;
    let best = null;
    let least = Infinity;
    for (const other of nodes(svg)) {
      const { x, y } = place(other);
      const along = (x - here.x) * turn[0] + (y - here.y) * turn[1];
      const aside = Math.abs((x - here.x) * turn[1]) + Math.abs((y - here.y) * turn[0]);
      const far = along + 2 * aside;
      if (along > 0.5 && far < least && seen(other)) [best, least] = [other, far];
    }
    return best;
  }

  /** Bring a node into what is shown. @param {SVGAElement} one */
  function reveal(one) {
    const svg = /** @type {SVGSVGElement} */ (drawing(one));
    const [x, y, w, h] = shown(svg).box;
    const at = place(one);
    if (at.x < x || at.x > x + w || at.y < y || at.y > y + h) look(svg, [at.x - w / 2, at.y - h / 2, w, h]);
  }

  /** @param {SVGSVGElement} svg @param {boolean} on */
  function deepen(svg, on) {
    const state = shown(svg);
    if (on === state.deep) return;
    const far = numbers(svg.dataset.far ?? null);
    svg.dataset.far = state.home.join(" ");
    Object.assign(state, { deep: on, home: far });
    look(svg, far);
  }

  /** Drawings that are in the page now get their tools. */
  function show() {
    for (const svg of document.querySelectorAll(".graph__svg")) {
      const tools = svg.closest(".graph")?.querySelector(".graph__tools");
      if (tools instanceof HTMLElement) tools.hidden = false;
      size(/** @type {SVGSVGElement} */ (svg));
    }
  }

  /** @type {Record<string, (event: any) => void>} */
  const heard = {
    pointerover({ target }) {
      const svg = drawing(target);
      if (svg) light(svg, node(target) ?? node(document.activeElement));
    },
    pointerout({ target, relatedTarget }) {
      const svg = drawing(target);
      if (svg && drawing(relatedTarget) !== svg) light(svg, null);
    },
    focusin({ target }) {
      const one = node(target);
      const svg = drawing(one);
      if (!one || !svg) return;
      stop(one);
      light(svg, one);
      reveal(one);
    },
    focusout({ target }) {
      const svg = drawing(target);
      if (svg) light(svg, null);
    },
    click(event) {
      const button = event.target instanceof Element ? event.target.closest(".graph__tools [data-do]") : null;
      const svg = button?.closest(".graph")?.querySelector(".graph__svg");
      if (!svg) return;
      const what = button.getAttribute("data-do");
      if (what === "fit") look(svg, shown(svg).home);
      else zoom(svg, what === "in" ? 2 : 0.5);
    },
    change({ target }) {
      const svg = target instanceof Element && target.matches(".graph input") ? target.closest(".graph")?.querySelector(".graph__svg") : null;
      if (svg && target.closest(".graph__deep")) deepen(/** @type {SVGSVGElement} */ (svg), target.checked);
    },
    keydown(event) {
      const svg = drawing(event.target);
      const one = node(event.target);
      if (!svg || !one || event.ctrlKey || event.metaKey || event.altKey) return;
      const by = /** @type {Record<string, number>} */ ({ "+": 2, "=": 2, "-": 0.5 })[event.key];
      const to = next(one, event.key);
      if (by) zoom(svg, by);
      else if (event.key === "0") look(svg, shown(svg).home);
      else if (to) to.focus({ preventScroll: true });
      else if (!event.key.startsWith("Arrow")) return;
      event.preventDefault();
    },
    wheel(event) {
      const svg = drawing(event.target);
      // Without Ctrl the wheel scrolls the page, as everywhere; a pinch on a touchpad comes with it.
      if (!svg || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      zoom(svg, Math.exp(-event.deltaY / (event.deltaMode ? 10 : 200)), { x: event.clientX, y: event.clientY });
    },
    pointerdown(event) {
      const svg = drawing(event.target);
      if (svg && !event.button) shown(svg).fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    },
    pointermove(event) {
      const svg = drawing(event.target);
      const fingers = svg && shown(svg).fingers;
      const was = fingers?.get(event.pointerId);
      if (!svg || !fingers || !was) return;
      const now = { x: event.clientX, y: event.clientY };
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      fingers.set(event.pointerId, now);
      if (other) {
        const reach = Math.hypot(was.x - other.x, was.y - other.y);
        if (reach) zoom(svg, Math.hypot(now.x - other.x, now.y - other.y) / reach, { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
      } else if (svg.hasAttribute("data-moved")) {
        const scale = svg.getScreenCTM()?.a ?? 1;
        const [x, y, w, h] = shown(svg).box;
        look(svg, [x - (now.x - was.x) / scale, y - (now.y - was.y) / scale, w, h]);
      }
    },
    pointerup: lift,
    pointercancel: lift,
    // A drag that begins on a node moves the drawing, not a copy of the link.
    dragstart(event) {
      if (node(event.target)) event.preventDefault();
    },
  };

  /**
   * Follow a link of a drawing. Themes take every link for one of HTML, whose address is a text, and fail at these:
   * so they get one of those to follow, and the panel is asked itself.
   * @param {MouseEvent} event
   */
  function follow(event) {
    const one = node(event.target);
    if (!one) return;
    event.stopPropagation();
    if (event.button || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    const src = one.getAttribute("data-src");
    if (src) return SourcePanel.open(src, /** @type {any} */ (one));
    const link = document.createElement("a");
    link.href = one.href.baseVal;
    drawing(one)?.after(link);
    link.click();
    link.remove();
  }

  /** @param {PointerEvent} event */
  function lift(event) {
    for (const svg of document.querySelectorAll(".graph__svg")) known.get(/** @type {SVGSVGElement} */ (svg))?.fingers.delete(event.pointerId);
  }

  for (const [name, hear] of Object.entries(heard)) document.addEventListener(name, hear, { passive: name !== "wheel" && name !== "keydown" && name !== "dragstart" });
  document.addEventListener("click", follow, true);
  addEventListener("resize", show);
  SourcePanel.graph = { show };
  if (globalThis.document$) document$?.subscribe(show);
  show();
})();
