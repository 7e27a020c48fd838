// @ts-check
/** Copy the lines, or a reference to them, in the shapes that notes, messages and terminals want; wrap long lines. */
(() => {
  const { element, icon } = SourcePanel.view;
  const { tool, pop } = SourcePanel.windows;
  const S = SourcePanel.state;
  const COPY = "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3";
  const DONE = "m3 8.5 3.5 3.5 6.5-8";
  const WRAP = "M2.5 4h11M2.5 8h9a2 2 0 0 1 0 4.5H8m1.5-1.8L7.7 12.5l1.8 1.8M2.5 12.5h2";

  /** The clipboard of the browser; the old way where that is missing or refused. @param {string} text */
  async function write(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = element("textarea", { class: "sp-live", "aria-hidden": "true" });
      const before = /** @type {HTMLElement | null} */ (document.activeElement);
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      before?.focus({ preventScroll: true });
      return done;
    }
  }

  (SourcePanel.features ??= []).push((api) => {
    const button = tool(api.say("copy"), COPY, menu, { "aria-haspopup": "dialog", "aria-expanded": "false" });
    const wrap = tool(`${api.say("wrap")} (w)`, WRAP, toggle, { "aria-pressed": "false" });
    let wrapped = false;
    try {
      wrapped = localStorage.getItem("sourcepanel.wrap") === "true";
    } catch {
      // Storage may be switched off; then the choice lasts as long as the page.
    }

    /** What can be copied of the place that is open: [name of the string, text]. @returns {[string, string][]} */
    function shapes() {
      const { address } = api.state();
      const data = address && api.data(S.key(address));
      if (!address || !data || data.kind === "folder") return [];
      const { repo, path, start, end } = address;
      const lines = start ? S.format(address).slice(S.key(address).length) : "";
      const href = api.site.repositories[repo].blob + path.split("/").map(encodeURIComponent).join("/") + lines;
      const place = path + (start ? `:${start}${end === start ? "" : `-${end}`}` : "");
      const symbols = data.kind === "file" ? data.symbols : [];
      const name = S.symbolAt(symbols, start, end);
      const exact = symbols.some(([one, , a, line, b]) => one === name && ((a === start && b === end) || (line === start && start === end)));
      const reference = `${repo === api.repos[0] ? "" : `${repo}:`}${path}::${name}`;
      const text = api.view()?.root.querySelector(".sp-lines")?.textContent?.split("\n").slice(start && start - 1, start ? end : -1);
      return [
        ...(text ? [/** @type {[string, string]} */ (["copyCode", `${text.join("\n")}\n`])] : []),
        ["copyPlace", place],
        ["copyPermalink", href],
        ["copyLink", `[\`${name || place}\`](${href})`],
        ...(exact ? [/** @type {[string, string]} */ (["copySymbol", `\`${reference}\``])] : []),
      ];
    }

    /** @param {string} name */
    async function copy(name) {
      const text = shapes().find((shape) => shape[0] === name)?.[1];
      const done = text !== undefined && (await write(text));
      api.announce(api.say(done ? "copied" : "copyFailed", { what: api.say(name) }));
      if (!done) return;
      button.replaceChildren(icon(DONE));
      setTimeout(() => button.replaceChildren(icon(COPY)), 1500);
    }

    function menu() {
      const buttons = shapes().map(([name, text]) => {
        const onclick = () => {
          close();
          copy(name);
        };
        const first = text.split("\n")[0].trim();
        return element("button", { class: "sp-button", type: "button", onclick }, element("span", {}, api.say(name)), element("small", {}, first));
      });
      const close = pop(api, { label: api.say("copy"), button }, ...buttons);
    }

    function toggle() {
      wrapped = !wrapped;
      const hold = api.view()?.hold ?? ((/** @type {() => void} */ change) => change());
      hold(show);
      api.announce(api.say(wrapped ? "wrapOn" : "wrapOff"));
      try {
        localStorage.setItem("sourcepanel.wrap", String(wrapped));
      } catch {
        // As above.
      }
    }

    function show() {
      api.panel().panel.classList.toggle("sp-wrap", wrapped);
      wrap.setAttribute("aria-pressed", String(wrapped));
    }

    SourcePanel.keys.push(
      { keys: ["c"], says: "copyCode", run: () => shapes()[0]?.[0] === "copyCode" && void copy("copyCode") },
      { keys: ["y"], says: "copyPermalink", run: () => shapes().length > 0 && void copy("copyPermalink") },
      { keys: ["w"], says: "wrap", run: () => (api.view()?.hold ? toggle() : false) },
    );
    return {
      tools: () => [...(api.view()?.hold ? [wrap] : []), ...(shapes().length ? [button] : [])],
      state(before, now) {
        if (before.address || !now.address) return;
        show();
        // Wrapped lines stand lower than those that were placed.
        if (wrapped) api.view()?.mark(now.address.start, now.address.end, true);
      },
    };
  });
})();
