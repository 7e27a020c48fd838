// @ts-check
/**
 * Scopes of a Python file: the class and function that the first line in view belongs to stand above the code,
 * and each can be folded.
 *
 * Folded lines stay in the document (`hidden="until-found"`): where the browser's own find can, it finds them,
 * and they unfold.
 */
(() => {
  const { element } = SourcePanel.view;
  const { tool } = SourcePanel.windows;
  const ICON = "m4 6 4-4 4 4M4 10l4 4 4-4";
  const HEIGHT = 24;
  /** @type {WeakMap<View, { fold(): void, all(): void }>} */
  const folders = new WeakMap();

  (SourcePanel.features ??= []).push((api) => {
    const bar = element("nav", { class: "sp-scope", "aria-label": api.say("scope"), hidden: true });
    const button = tool(`${api.say("foldAll")} (Z)`, ICON, () => act("all"));
    let told = "";

    /** @param {SymbolRow[]} symbols @param {number} n @returns {SymbolRow[]} */
    const around = (symbols, n) => symbols.filter(([, kind, , line, end]) => kind !== "variable" && line < n && n <= end);
    const folder = () => folders.get(/** @type {View} */ (api.view()));
    const act = (/** @type {"fold" | "all"} */ what) => (folder() ? folder()?.[what]() : false);

    /** Show where the first line in view is. @param {View} view @param {Extract<Data, { kind: "file" }>} data */
    function tell(view, data) {
      if (view !== api.view() || !view.top) return;
      const scopes = around(data.symbols, view.top(HEIGHT));
      const now = scopes.map(([name]) => name).join();
      bar.hidden = !now;
      bar.style.marginInlineEnd = `${view.root.offsetWidth - view.root.clientWidth}px`;
      if (now === told) return;
      told = now;
      const sign = (/** @type {string} */ kind) => (data.language === "Python" ? [element("span", { class: "k" }, kind === "class" ? "class " : "def ")] : []);
      bar.replaceChildren(...scopes.map(([name, kind, , line]) => {
        const text = name.split(".").pop() ?? name;
        const onclick = () => {
          view.show?.(line);
          view.root.focus({ preventScroll: true });
        };
        return element("button", { type: "button", title: api.say("line", { start: line }), onclick }, ...sign(kind), text);
      }));
    }

    /** @param {View} view @param {Extract<Data, { kind: "file" }>} data */
    function foldable(view, data) {
      const { symbols } = data;
      const scopes = new Map(symbols.filter(([, kind, , line, end]) => kind !== "variable" && end > line).map((symbol) => [symbol[3], symbol]));
      /** @type {Set<number>} Lines of the `def` or `class` of what is folded. */
      const folded = new Set();
      /** @type {Set<HTMLElement>} */
      const sections = new Set();
      let frame = 0;

      /** Fold or unfold, then hide and show lines to match. @param {number[]} lines @param {boolean} on */
      function set(lines, on) {
        for (const n of lines) {
          if (on) folded.add(n);
          else folded.delete(n);
        }
        // What lies inside another needs no second pass.
        let done = 0;
        for (const n of lines.sort((a, b) => a - b)) {
          sign(n);
          const end = /** @type {SymbolRow} */ (scopes.get(n))[4];
          for (let m = Math.max(n, done) + 1; m <= end; m++) {
            const line = view.line?.(m);
            if (!line) break;
            if (around(symbols, m).some(([, , , at]) => folded.has(at))) line.setAttribute("hidden", "until-found");
            else line.removeAttribute("hidden");
            sections.add(/** @type {HTMLElement} */ (line.parentElement));
          }
          done = Math.max(done, end);
        }
        // The browser remembers the height a section out of view had; show it a moment, so that it learns the new one.
        for (const { style } of sections) style.contentVisibility = "visible";
        cancelAnimationFrame(frame);
        frame = requestAnimationFrame(() => {
          frame = requestAnimationFrame(() => {
            for (const { style } of sections) style.contentVisibility = "";
            sections.clear();
          });
        });
        tell(view, data);
      }

      /** The signs of a line that can be folded. @param {number} n */
      function sign(n) {
        const line = view.line?.(n);
        const [name, , , , end] = /** @type {SymbolRow} */ (scopes.get(n));
        const on = folded.has(n);
        line?.querySelector(".sp-fold")?.setAttribute("aria-expanded", String(!on));
        line?.querySelector(".sp-more")?.remove();
        const last = line?.lastChild;
        if (!on || !last) return;
        const more = element("button", { class: "sp-more", type: "button", tabindex: "-1", "aria-label": api.say("unfold", { name, count: end - n }), "data-more": api.say("more", { count: end - n }) });
        // Before the line's own end, so that the text stays as it is.
        /** @type {Text} */ (last).splitText((last.textContent ?? "").length - 1);
        last.after(more);
      }

      /** Nothing that is to be seen stays folded. @param {...number} lines */
      function reveal(...lines) {
        const inside = [...folded].filter((n) => lines.some((m) => n < m && m <= /** @type {SymbolRow} */ (scopes.get(n))[4]));
        if (inside.length) set(inside, false);
      }

      view.dressed?.((lines, first) => lines.forEach((line, i) => {
        const symbol = scopes.get(first + i);
        if (!symbol) return;
        const button = element("button", { class: "sp-fold", type: "button", tabindex: "-1", "aria-expanded": "true", "aria-label": api.say("fold", { name: symbol[0] }) });
        line.firstElementChild?.after(button);
      }));
      view.root.addEventListener("click", (event) => {
        const pressed = /** @type {Element} */ (event.target).closest(".sp-fold, .sp-more");
        const n = Number(pressed?.parentElement?.querySelector(".sp-n")?.getAttribute("data-n"));
        if (n) set([n], !folded.has(n));
      });
      view.root.addEventListener("beforematch", ({ target }) => {
        reveal(Number(/** @type {Element} */ (target).querySelector(".sp-n")?.getAttribute("data-n")));
      });
      const { mark, show } = view;
      view.mark = (start, end, scroll) => {
        reveal(start, end);
        mark(start, end, scroll);
      };
      view.show = (line) => {
        reveal(line);
        show?.(line);
      };
      folders.set(view, {
        fold() {
          const at = view.here?.(HEIGHT) ?? 1;
          const near = scopes.get(at) ?? around(symbols, at).pop() ?? [...scopes.values()].find((symbol) => symbol[3] > at);
          if (near) set([near[3]], !folded.has(near[3]));
          if (near && folded.has(near[3])) view.show?.(near[3]);
        },
        all() {
          const on = !folded.size;
          const lines = on ? [...scopes.values()].filter(([, kind]) => kind !== "class").map((symbol) => symbol[3]) : [...folded];
          view.hold?.(() => set(lines, on));
          api.announce(api.say(on ? "folded" : "unfolded", { count: lines.length }));
        },
      });
    }

    SourcePanel.keys.push(
      { keys: ["z"], says: "foldOne", run: () => act("fold") },
      { keys: ["Z"], says: "foldAll", run: () => act("all") },
    );

    return {
      tools: () => (folder() ? [button] : []),
      view(view, _, data) {
        if (data.kind !== "file" || !data.symbols.some(([, kind, , line, end]) => kind !== "variable" && end > line)) return;
        let frame = 0;
        foldable(view, data);
        const soon = () => {
          cancelAnimationFrame(frame);
          frame = requestAnimationFrame(() => tell(view, data));
        };
        view.root.addEventListener("scroll", soon, { passive: true });
        view.dressed?.(soon);
      },
      state() {
        const { body } = api.panel();
        if (!bar.isConnected) body.before(bar);
        const view = api.view();
        const { address } = api.state();
        const data = address && api.data(SourcePanel.state.key(address));
        if (view && data?.kind === "file") tell(view, data);
        else bar.hidden = true;
      },
    };
  });
})();
