// @ts-check
/**
 * The grip between text and panel: drag it, or use the arrow keys. Docked it sets the width, as a bottom sheet
 * the height; each is remembered. A sheet is pulled by its head too; pulled down to the edge, or swiped, it closes.
 */
(() => {
  const html = document.documentElement;
  const STEP = 0.04;
  const [LEAST, MOST] = [0.15, 0.9];
  /** Pixels per millisecond: a pull that ends faster is a swipe. */
  const SWIPE = 0.6;

  /**
   * @param {PanelParts} ui
   * @param {{ layout: () => Layout, close: () => void }} panel
   */
  function resize({ panel, grip, head }, { layout, close }) {
    const axis = () => (layout() === "sheet" ? "height" : "width");
    const whole = () => (axis() === "height" ? innerHeight : innerWidth);
    const share = () => (axis() === "height" ? panel.offsetHeight : panel.offsetWidth) / whole();

    /** @param {number} value  Share of the window. */
    function set(value) {
      const kept = Math.min(MOST, Math.max(LEAST, value));
      html.style.setProperty(`--sp-${axis()}`, `${(100 * kept).toFixed(2)}${axis() === "height" ? "vh" : "vw"}`);
      tell();
    }

    function tell() {
      grip.setAttribute("aria-orientation", axis() === "height" ? "horizontal" : "vertical");
      grip.setAttribute("aria-valuenow", String(Math.round(100 * share())));
    }

    function keep() {
      try {
        localStorage.setItem(`sourcepanel.${axis()}`, String(share()));
      } catch {
        // Storage may be switched off; then the size lasts as long as the page.
      }
    }

    /** Take the remembered size for the layout that now holds. */
    function restore() {
      let kept = NaN;
      try {
        kept = parseFloat(localStorage.getItem(`sourcepanel.${axis()}`) ?? "");
      } catch {
        // As above.
      }
      if (kept) set(kept);
      else tell();
    }

    grip.setAttribute("aria-valuemin", String(100 * LEAST));
    grip.setAttribute("aria-valuemax", String(100 * MOST));
    let [speed, at, when] = [0, 0, 0];
    for (const handle of [grip, head]) handle.addEventListener("pointerdown", (event) => {
      if (event.button || (handle === head && (axis() === "width" || /** @type {Element} */ (event.target).closest("a, button")))) return;
      [speed, at, when] = [0, event.clientY, event.timeStamp];
      event.preventDefault();
      grip.setPointerCapture(event.pointerId);
      html.classList.add("sp-resizing");
    });
    /** @param {PointerEvent} event */
    const pulled = (event) => (axis() === "height" ? innerHeight - event.clientY : innerWidth - event.clientX) / whole();
    grip.addEventListener("pointermove", (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      speed = (event.clientY - at) / Math.max(1, event.timeStamp - when);
      [at, when] = [event.clientY, event.timeStamp];
      set(pulled(event));
    });
    grip.addEventListener("lostpointercapture", (event) => {
      html.classList.remove("sp-resizing");
      // A finger that rests before it lets go has swiped nothing.
      const swiped = speed > SWIPE && event.timeStamp - when < 100;
      if (axis() === "height" && event.clientY && (swiped || pulled(event) < LEAST)) close();
      else keep();
    });
    grip.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: STEP, ArrowUp: STEP, ArrowRight: -STEP, ArrowDown: -STEP }[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      set(share() + step);
      keep();
    });
    panel.addEventListener("sp-arrange", restore);
  }

  Object.assign(globalThis.SourcePanel, { resize });
})();
