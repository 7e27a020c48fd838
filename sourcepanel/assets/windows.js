// @ts-check
/** The small windows that features open over the code, and the lists to pick from in them. */
(() => {
  const { element, icon } = SourcePanel.view;
  /** @type {{ button: HTMLElement | undefined, close(): void } | null} The small window that is open. */
  let open = null;

  /** @type {Windows["tool"]} */
  const tool = (label, path, onclick, properties = {}) =>
    element("button", { class: "sp-button sp-tool", type: "button", "aria-label": label, title: label, onclick, ...properties }, icon(path));

  /** @type {Windows["pop"]} */
  function pop(api, { label, button, closed }, ...children) {
    const again = open && open.button && open.button === button;
    open?.close();
    if (again) return () => {};
    const { panel, tools } = api.panel();
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    /** @type {HTMLElement} */
    const root = element("div", { class: "sp-pop", role: "dialog", "aria-label": label }, ...children);

    function close() {
      if (!root.isConnected) return;
      open = null;
      const inside = root.contains(document.activeElement);
      document.removeEventListener("click", outside);
      button?.setAttribute("aria-expanded", "false");
      root.remove();
      closed?.();
      if (inside) (before && panel.contains(before) ? before : api.view()?.root)?.focus({ preventScroll: true });
    }
    /** @param {MouseEvent} event */
    function outside({ target }) {
      if (!root.contains(/** @type {Node} */ (target)) && !tools.contains(/** @type {Node} */ (target))) close();
    }
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing) {
        event.preventDefault();
        close();
      } else if (/^Arrow(Up|Down)$/.test(event.key) && !event.defaultPrevented) {
        walk([...root.querySelectorAll("button, a")], event, "ArrowUp", "ArrowDown");
      }
    });
    root.addEventListener("focusout", ({ relatedTarget }) => {
      if (relatedTarget && !root.contains(/** @type {Node} */ (relatedTarget)) && !tools.contains(/** @type {Node} */ (relatedTarget))) close();
    });
    // The click that opens the window must not close it.
    setTimeout(() => root.isConnected && document.addEventListener("click", outside));
    tools.after(root);
    button?.setAttribute("aria-expanded", "true");
    open = { button, close };
    const first = /** @type {HTMLElement | null} */ (root.querySelector("input, button"));
    // On a touch screen a field would bring up the keyboard over half of the panel.
    root.tabIndex = first ? -1 : 0;
    (first && !(first.matches("input") && matchMedia("(pointer: coarse)").matches) ? first : root).focus();
    return close;
  }

  /** A path may break after its slashes. @param {string} text */
  const breakable = (text) => text.split(/(?<=\/)/).flatMap((part, i) => (i ? [element("wbr"), part] : [part]));

  /** @type {Windows["pick"]} */
  function pick(api, { label, button, choices, start, pick }) {
    /** @type {HTMLElement} */
    const list = element("ul", { class: "sp-choices", id: "sp-choices", role: "listbox", "aria-label": label });
    const field = element("input", { type: "text", role: "combobox", "aria-controls": "sp-choices", "aria-expanded": "true", "aria-autocomplete": "list", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: label, "aria-label": label });
    const none = element("p", { class: "sp-none", role: "status" });
    /** @type {Choice[]} */
    let shown = [];
    let at = 0;

    /** @param {number} to */
    function move(to) {
      list.children[at]?.setAttribute("aria-selected", "false");
      at = Math.max(0, Math.min(shown.length - 1, to));
      list.children[at]?.setAttribute("aria-selected", "true");
      list.children[at]?.scrollIntoView({ block: "nearest" });
      field.setAttribute("aria-activedescendant", shown.length ? `sp-choice-${at}` : "");
    }
    function fill() {
      const query = field.value.trim();
      shown = choices(query);
      list.replaceChildren(...shown.map(({ text, note = "", kind = "", depth = 0 }, i) => {
        const item = element("li", { role: "option", id: `sp-choice-${i}`, "aria-selected": "false", "data-kind": kind }, element("span", {}, ...breakable(text)), element("small", {}, ...breakable(note)));
        item.style.setProperty("--sp-depth", String(depth));
        return item;
      }));
      none.textContent = shown.length ? "" : api.say("none");
      move(query ? 0 : start ?? 0);
    }
    /** @param {number} i */
    function take(i) {
      if (!shown[i]) return;
      close();
      pick(shown[i]);
    }
    field.addEventListener("input", fill);
    field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing) return;
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
      if (!step && event.key !== "Enter") return;
      event.preventDefault();
      if (step) move(at + step);
      else take(at);
    });
    list.addEventListener("click", (event) => {
      const item = /** @type {Element} */ (event.target).closest("li");
      if (item) take([...list.children].indexOf(item));
    });
    const close = pop(api, { label, button }, field, none, list);
    fill();
  }

  /** Move the focus along a row. @param {Element[]} row @param {KeyboardEvent} event @param {string} back @param {string} on */
  function walk(row, event, back, on) {
    const step = event.key === on ? 1 : event.key === back ? -1 : 0;
    if (!step || !row.length) return;
    event.preventDefault();
    const at = row.indexOf(/** @type {Element} */ (document.activeElement));
    /** @type {HTMLElement | undefined} */ (row[(at + step + row.length) % row.length])?.focus();
  }

  Object.assign(SourcePanel, { keys: [], windows: { tool, pop, pick, walk, close: () => open?.close() } });
})();
