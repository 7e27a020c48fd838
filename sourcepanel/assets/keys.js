// @ts-check
/**
 * Keys of the panel, and the sheet that tells them. Features put what they listen for into `SourcePanel.keys`.
 *
 * A key never works in a field and never with Ctrl or Meta (those are the browser's); one that does not ask for
 * the whole page works only while the focus is in the panel.
 */
(() => {
  const { element } = SourcePanel.view;
  const { tool, pop, walk, close } = SourcePanel.windows;
  const { keys } = SourcePanel;
  const HELP = "M6 6.2a2.1 2.1 0 1 1 2.9 1.9c-.6.3-.9.7-.9 1.4M8 12v.1";
  const ARROWS = [["Left", "←"], ["Right", "→"], ["Up", "↑"], ["Down", "↓"]];
  const FIELD = "input, textarea, select, [contenteditable]";

  /** @type {(api: PanelApi) => Feature} */
  function feature(api) {
    const row = () => /** @type {HTMLElement[]} */ ([...api.panel().tools.querySelectorAll("button:not(:disabled), a")]);
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
          tools.addEventListener("keydown", (event) => walk(row(), event, "ArrowLeft", "ArrowRight"));
          tools.addEventListener("focusin", rove);
          new MutationObserver(rove).observe(tools, { childList: true, subtree: true, attributeFilter: ["disabled"] });
          rove();
        }
        const [here, there] = [before, now].map(({ address }) => address && SourcePanel.state.key(address));
        if (here !== there) close();
      },
    };

    function rove() {
      const all = row();
      const stop = all.find((one) => one === document.activeElement) ?? all.find((one) => one.getAttribute("tabindex") === "0") ?? all[0];
      for (const one of all) one.tabIndex = one === stop ? 0 : -1;
    }
  }

  (SourcePanel.features ??= []).push(feature);
})();
