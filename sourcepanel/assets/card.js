// @ts-check
/**
 * One box that tells of what is pointed at, beside it. Features say what they know of an element (`hovers`).
 *
 * It comes with the pointer or with Tab and goes with it, but not while the pointer is on its way into the box or
 * inside it; Escape closes it. There is never a second one.
 */
(() => {
  const { element } = SourcePanel.view;
  const [WAIT, LINGER] = [250, 300];
  /** @type {HTMLElement} Made on first use. */
  let box;
  /** @type {Element | null} */
  let anchor = null;
  let timer = 0;
  let tabbed = false;
  /** Grows with each wish, so that data that comes late fills no other box. */
  let turn = 0;

  function close() {
    clearTimeout(timer);
    turn += 1;
    anchor?.removeAttribute("aria-describedby");
    if (anchor) box.hidden = true;
    anchor = null;
  }

  /** @param {Hover} hover */
  function open({ anchor: to, label, fill }) {
    close();
    const mine = turn;
    fill((...nodes) => {
      if (turn !== mine || !to.isConnected || !nodes.length) return;
      if (!box) document.body.append((box = element("div", { id: "sp-card", class: "sp-card", role: "tooltip" })));
      anchor = to;
      anchor.setAttribute("aria-describedby", "sp-card");
      box.setAttribute("aria-label", label);
      box.replaceChildren(...nodes);
      box.hidden = false;
      place(to.getBoundingClientRect());
    });
  }

  /** Below the anchor where there is room, else above; it touches the anchor, so the pointer can cross. */
  function place(/** @type {DOMRect} */ at) {
    const [width, height] = [box.offsetWidth, box.offsetHeight];
    const below = at.bottom + height <= innerHeight || at.top < innerHeight - at.bottom;
    box.style.top = `${Math.max(4, below ? at.bottom : at.top - height)}px`;
    box.style.left = `${Math.max(4, Math.min(at.left, innerWidth - width - 4))}px`;
    box.style.maxHeight = `${Math.min(480, Math.max(at.top, innerHeight - at.bottom) - 4)}px`;
    if (!below) box.style.top = `${at.top - box.offsetHeight}px`;
  }

  /** @param {EventTarget | null} target */
  function hoverOf(target) {
    if (!(target instanceof Element)) return null;
    for (const ask of card.hovers) {
      const hover = ask(target);
      if (hover) return hover;
    }
    return null;
  }

  /** @type {Card} */
  const card = { close, hovers: [] };

  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType === "touch") return;
    clearTimeout(timer);
    if (anchor && [anchor, box].some((one) => one?.contains(/** @type {Node} */ (target)))) return;
    const hover = hoverOf(target);
    if (hover) timer = setTimeout(open, WAIT, hover);
    else timer = setTimeout(close, LINGER);
  });
  document.addEventListener("focusin", ({ target }) => {
    const hover = tabbed && hoverOf(target);
    if (hover) open(hover);
    else if (!box?.contains(/** @type {Node} */ (target))) close();
  });
  document.addEventListener("pointerdown", ({ target }) => {
    tabbed = false;
    if (!box?.contains(/** @type {Node} */ (target))) close();
  });
  // Before anybody else hears of it: Escape closes the box first, and only then the panel.
  addEventListener("keydown", (event) => {
    tabbed = event.key === "Tab";
    if (event.key === "Enter") close();
    if (event.key !== "Escape" || !anchor) return;
    event.preventDefault();
    close();
  }, true);
  document.addEventListener("scroll", ({ target }) => {
    if (anchor && !box.contains(/** @type {Node} */ (target))) close();
  }, { capture: true, passive: true });

  Object.assign(SourcePanel, { card });
})();
