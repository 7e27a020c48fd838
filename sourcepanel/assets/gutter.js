// @ts-check
/** Marks beside the lines that notes speak of, or at which recorded runs communicated; a click lists them. */
(() => {
  const S = SourcePanel.state;
  const { element } = SourcePanel.view;
  /** A longer range gets a mark at its first line only. */
  const SHORT = 60;

  (SourcePanel.features ??= []).push((api) => {
    const { say } = api;
    const root = new URL("..", api.base);

    /** The page at the words; what is open stays open. @param {string} url */
    function leap(url) {
      const to = new URL(url, root);
      const here = new URL(location.href);
      if (to.pathname === here.pathname) return here.search + to.hash;
      to.search = S.query("", api.state().address);
      return to.href;
    }

    /** @param {MentionRow} row */
    function sentence([start, end, page, url, heading, before, text, after]) {
      const lines = api.range({ repo: "", path: "", start, end }) || say("wholeFile");
      const where = element("small", {}, [page, heading, lines].filter(Boolean).join(" · "));
      return element("li", {}, element("a", { href: leap(url) }, where, element("span", {}, before, element("mark", {}, text), after)));
    }

    /** @param {EventRow} row */
    function event([, trace, url, command, calls]) {
      const count = calls.reduce((sum, call) => sum + call[2], 0);
      const list = calls.map(([name, group, times]) => element("code", {}, `${name} · ${group} × ${times}`));
      const head = element("small", {}, say("events", { count, trace }), element("br"), command);
      return element("li", {}, element("a", { href: new URL(url, root).href, class: "sp-run" }, head, ...list));
    }

    // The words that a mark led to, once what is open has taken its room.
    const arrived = () => /^#sp-\d/.test(location.hash) && document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center", behavior: "instant" });
    if (location.hash) addEventListener("load", () => requestAnimationFrame(arrived), { once: true });

    return {
      view(view, address, data) {
        if (data.kind !== "file") return;
        const { mentions = [], events = [] } = data;
        /** @type {Map<number, [MentionRow[], EventRow[]]>} */
        const rows = new Map();
        /** @param {number} line @returns {[MentionRow[], EventRow[]]} */
        function at(line) {
          if (!rows.has(line)) rows.set(line, [[], []]);
          return /** @type {any} */ (rows.get(line));
        }
        const said = new Set();
        for (const row of mentions) {
          at(row[0] || 1)[0].push(row);
          for (let n = row[0]; n && n <= row[1] && row[1] - row[0] < SHORT; n++) said.add(n);
        }
        for (const row of events) at(row[0])[1].push(row);
        if (!rows.size) return;
        view.dressed?.((lines, first) => lines.forEach((line, i) => {
          const n = first + i;
          if (said.has(n)) line.classList.add("sp-said");
          const [notes, runs] = rows.get(n) ?? [];
          if (!notes || !runs) return;
          const calls = runs.flatMap((row) => row[4]).reduce((sum, call) => sum + call[2], 0);
          const told = [notes.length && say("marksNotes", { notes: notes.length }), calls && say("marksEvents", { events: calls })];
          const title = say("marks", { line: n, told: told.filter(Boolean).join(say("and")) });
          const button = element("button", { type: "button", class: `sp-m${notes.length ? "" : " sp-ran"}`, "aria-label": title, title, "aria-expanded": "false" });
          button.onclick = () => SourcePanel.windows.pop(api, { label: title, button }, element("ul", { class: "sp-told" }, ...notes.map(sentence), ...runs.map(event)));
          line.prepend(button);
        }));
      },
    };
  });
})();
