// @ts-check
/**
 * Keys of the panel, the sheet that tells them, and the small windows that features open over the code.
 *
 * Features put what they listen for into `SourcePanel.keys`. A key never works in a field, never with Ctrl or
 * Meta (those are the browser's), and alone only while the focus is in the panel, unless it asks for the page.
 */
(() => {
  const { element, icon } = SourcePanel.view;
  const HELP = "M6 6.2a2.1 2.1 0 1 1 2.9 1.9c-.6.3-.9.7-.9 1.4M8 12v.1";
  const ARROWS = [["Left", "←"], ["Right", "→"], ["Up", "↑"], ["Down", "↓"]];
  const FIELD = "input, textarea, select, [contenteditable]";
  /** @type {Key[]} */
  const keys = [];
  /** @type {{ button: HTMLElement | undefined, close(): void } | null} The small window that is open. */
  let open = null;

  /** @type {Windows["tool"]} */
  const tool = (label, path, onclick, properties = {}) =>
    element("button", { class: "sp-button sp-tool", type: "button", "aria-label": label, title: label, onclick, ...properties }, icon(path));

  /** @type {Windows["pop"]} */
  function pop(api, { label, button }, ...children) {
    const again = open && open.button && open.button === button;
    open?.close();
    if (again) return () => {};
    const { panel, tools } = api.panel();
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    /** @type {HTMLElement} */
    const root = element("div", { class: "sp-pop", role: "dialog", "aria-label": label, tabindex: "-1" }, ...children);

    function close() {
      if (!root.isConnected) return;
      open = null;
      const inside = root.contains(document.activeElement);
      document.removeEventListener("click", outside);
      button?.setAttribute("aria-expanded", "false");
      root.remove();
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
    (first && !(first.matches("input") && matchMedia("(pointer: coarse)").matches) ? first : root).focus();
    return close;
  }

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
        const item = element("li", { role: "option", id: `sp-choice-${i}`, "aria-selected": "false", "data-kind": kind }, element("span", {}, text), element("small", {}, note));
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
    if (!step) return;
    event.preventDefault();
    const at = row.indexOf(/** @type {Element} */ (document.activeElement));
    /** @type {HTMLElement | undefined} */ (row[(at + step + row.length) % row.length])?.focus();
  }

  /** @type {(api: PanelApi) => Feature} */
  function feature(api) {
    const button = tool(`${api.say("keys")} (?)`, HELP, help, { "aria-haspopup": "dialog", "aria-expanded": "false" });
    let told = false;

    function help() {
      const rows = keys.map(({ keys, says }) =>
        element("tr", {}, element("th", { scope: "row" }, ...keys.flatMap((key, i) => [i ? " " : "", element("kbd", {}, ARROWS.reduce((text, [name, arrow]) => text.replace(`Arrow${name}`, arrow), key))])), element("td", {}, api.say(says))));
      pop(api, { label: api.say("keys"), button }, element("table", {}, element("caption", {}, api.say("keys")), element("tbody", {}, ...rows)));
    }

    document.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.isComposing) return;
      const target = /** @type {Element} */ (event.target);
      if (target.closest?.(FIELD)) return;
      const name = (event.altKey ? "Alt+" : "") + event.key;
      const inside = target.closest?.(".sp-panel");
      for (const key of keys) {
        if (!key.run || !key.keys.includes(name) || (!inside && key.where !== "page") || key.run(event) === false) continue;
        event.preventDefault();
        // Themes have keys of their own on the window: `/` and `p`, for two.
        event.stopPropagation();
        return;
      }
    });
    keys.push({ keys: ["?"], says: "keys", run: help }, { keys: ["Esc"], says: "keysClose" }, { keys: ["Shift"], says: "keysExtend" });

    return {
      tools: () => [button],
      state(before, now) {
        const { tools } = api.panel();
        if (!told) {
          told = true;
          // One stop for the Tab key, arrows inside.
          tools.addEventListener("keydown", (event) => walk([...tools.querySelectorAll("button, a")], event, "ArrowLeft", "ArrowRight"));
          tools.addEventListener("focusin", rove);
        }
        rove();
        const [here, there] = [before, now].map(({ address }) => address && SourcePanel.state.key(address));
        if (here !== there) open?.close();
      },
    };

    function rove() {
      const row = /** @type {HTMLElement[]} */ ([...api.panel().tools.querySelectorAll("button, a")]);
      const stop = row.find((one) => one === document.activeElement) ?? row.find((one) => one.getAttribute("tabindex") === "0") ?? row[0];
      for (const one of row) one.tabIndex = one === stop ? 0 : -1;
    }
  }

  Object.assign(SourcePanel, { keys, windows: { tool, pop, pick }, features: [...(SourcePanel.features ?? []), feature] });
})();
