// @ts-check
/** Find in the open file, and go to a line: a field of the panel's own, so that Ctrl+F stays the browser's. */
(() => {
  const { element, SECTION } = SourcePanel.view;
  const { tool } = SourcePanel.windows;
  const ICON = "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0Zm-1.3 3.2 3.8 3.8";
  const [UP, DOWN, CROSS] = ["m3.5 10 4.5-4.5 4.5 4.5", "m3.5 6 4.5 4.5 4.5-4.5", "m3.5 3.5 9 9m0-9-9 9"];
  const LINE = /^:\s*(\d+)(?:\s*-\s*(\d+))?$/;
  const highlights = "highlights" in CSS ? CSS.highlights : null;

  (SourcePanel.features ??= []).push((api) => {
    /** @type {[line: number, from: number, to: number][]} */
    let found = [];
    let at = -1;
    let frame = 0;
    /** @type {View | undefined} */
    let searched;
    const field = element("input", { type: "text", "aria-label": api.say("find"), placeholder: api.say("findHint"), autocomplete: "off", autocapitalize: "off", spellcheck: "false", oninput: () => search(true) });
    const count = element("output", {});
    const [cased, word] = [["findCase", "Aa"], ["findWord", "ab"]].map(([name, text]) => {
      const onclick = () => (switched(toggle), search(true));
      const toggle = element("button", { class: "sp-button sp-tool", type: "button", "aria-pressed": "false", "aria-label": api.say(name), title: api.say(name), onclick }, text);
      return toggle;
    });
    word.classList.add("sp-word");
    const bar = element("form", { class: "sp-find", role: "search", hidden: true, onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, field, count, cased, word, tool(`${api.say("findBack")} (Shift+Enter)`, UP, () => step(-1)), tool(`${api.say("findNext")} (Enter)`, DOWN, () => step(1)), tool(`${api.say("findClose")} (Esc)`, CROSS, close));
    const button = tool(`${api.say("find")} (/)`, ICON, () => (bar.hidden ? open("") : close()), { "aria-expanded": "false" });
    bar.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") {
        event.preventDefault();
        close();
      } else if (event.key === "Enter" && event.target === field) {
        event.preventDefault();
        if (LINE.test(field.value)) go();
        else step(event.shiftKey ? -1 : 1);
      }
    });

    /** @param {Element} toggle */
    const switched = (toggle) => toggle.setAttribute("aria-pressed", String(toggle.getAttribute("aria-pressed") !== "true"));
    const file = () => (api.view()?.line ? api.view() : undefined);

    /** @param {string} text */
    function open(text) {
      if (!file()) return false;
      bar.hidden = false;
      button.setAttribute("aria-expanded", "true");
      if (text) field.value = text;
      field.focus();
      if (text) search(true);
      else field.select(), search(false);
    }

    function close() {
      const inside = bar.contains(document.activeElement);
      bar.hidden = true;
      button.setAttribute("aria-expanded", "false");
      [found, at] = [[], -1];
      paint();
      if (inside) api.view()?.root.focus({ preventScroll: true });
    }

    /** `:123` or `:10-20` opens these lines. */
    function go() {
      const [, from, to = from] = LINE.exec(field.value) ?? [];
      const { address } = api.state();
      const data = address && api.data(SourcePanel.state.key(address));
      if (!from || !address || data?.kind !== "file") return;
      const [a, b] = [from, to].map((n) => Math.min(Math.max(1, Number(n)), data.lines)).sort((a, b) => a - b);
      close();
      api.dispatch({ type: "open", address: { ...address, start: a, end: b } }, { history: "push", focus: true });
    }

    /** Find all there is; with `jump` go to the first from where the reader is. @param {boolean} jump */
    function search(jump) {
      searched = file();
      const query = LINE.test(field.value) || field.value === ":" ? "" : field.value;
      [found, at] = [[], -1];
      if (query && searched) {
        const escaped = query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
        const whole = word.getAttribute("aria-pressed") === "true";
        const pattern = new RegExp(whole ? `(?<!\\w)${escaped}(?!\\w)` : escaped, cased.getAttribute("aria-pressed") === "true" ? "gu" : "giu");
        const lines = (searched.root.querySelector(".sp-lines")?.textContent ?? "").split("\n");
        lines.forEach((text, i) => {
          for (const { 0: hit, index } of text.matchAll(pattern)) found.push([i + 1, index, index + hit.length]);
        });
      }
      const top = searched?.top?.() ?? 1;
      const next = found.findIndex(([line]) => line >= top);
      if (jump && found.length) move(next < 0 ? 0 : next);
      else tell();
      paint();
    }

    /** @param {number} by */
    function step(by) {
      if (found.length) move((at + by + found.length) % found.length);
    }

    /** @param {number} to */
    function move(to) {
      at = to;
      searched?.show?.(found[at][0]);
      tell();
      paint();
      // A long line: bring the very place into view.
      const range = spot(found[at]);
      const root = searched?.root;
      if (!range || !root) return;
      const { left, width } = range.getBoundingClientRect();
      const x = left - root.getBoundingClientRect().left + root.scrollLeft;
      root.scrollLeft = x + width < root.clientWidth - 24 ? 0 : x - root.clientWidth / 2;
    }

    function tell() {
      count.textContent = field.value && !field.value.startsWith(":") ? `${at + 1}/${found.length}` : "";
      if (at >= 0) api.announce(api.say("findAt", { at: at + 1, count: found.length, line: found[at][0] }));
      else if (count.textContent) api.announce(api.say("findCount", { count: found.length }));
    }

    /** Where a hit stands in the document, if its line has elements already. */
    function spot(/** @type {[number, number, number]} */ [n, from, to]) {
      const line = searched?.line?.(n);
      if (!line) return null;
      const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      const range = document.createRange();
      let before = 0;
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        const after = before + (text.textContent ?? "").length;
        if (from >= before && from < after) range.setStart(text, from - before);
        if (to > before && to <= after) {
          range.setEnd(text, to - before);
          return range;
        }
        before = after;
      }
      return null;
    }

    /** Show the hits of the lines that have elements; after other features changed those. */
    function paint() {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        for (const line of document.querySelectorAll(".sp-hit")) line.classList.remove("sp-hit");
        const ready = [...(searched?.root.querySelectorAll("section") ?? [])].map((section) => section.className !== "");
        const near = found.filter(([n]) => ready[Math.floor((n - 1) / SECTION)]);
        if (highlights) {
          highlights.set("sp-hit", new Highlight(...near.flatMap((hit) => spot(hit) ?? [])));
          highlights.set("sp-now", new Highlight(...(found[at] ? [spot(found[at]) ?? []].flat() : [])));
        } else {
          for (const [n] of near) searched?.line?.(n)?.classList.add("sp-hit");
        }
      });
    }

    SourcePanel.keys.push(
      { keys: ["/"], says: "find", run: () => open("") },
      { keys: ["Enter", "Shift+Enter"], says: "findSteps" },
      { keys: ["g"], says: "goto", run: () => open(":") },
    );

    return {
      tools: () => (file() ? [button] : []),
      view(view) {
        view.dressed?.(() => view === searched && found.length && paint());
      },
      state(before, now) {
        const { tools } = api.panel();
        if (!bar.isConnected) tools.after(bar);
        if (bar.hidden) return;
        if (!now.address || (now.status === "ready" && !file())) close();
        else if (file() && file() !== searched) search(false);
      },
    };
  });
})();
