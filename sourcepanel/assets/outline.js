// @ts-check
/** The definitions of the open file, to filter and to go to. */
(() => {
  const { tool, pick } = SourcePanel.windows;
  const ICON = "M2.5 3.5h6M5.5 8h8M5.5 12.5h8";

  (SourcePanel.features ??= []).push((api) => {
    const button = tool(`${api.say("outline")} (o)`, ICON, show, { "aria-haspopup": "dialog", "aria-expanded": "false" });

    function symbols() {
      const { address } = api.state();
      const data = address && api.data(SourcePanel.state.key(address));
      return data?.kind === "file" ? data.symbols : [];
    }

    function show() {
      const all = symbols();
      const here = api.view()?.here?.() ?? 1;
      let start = 0;
      all.forEach(([, kind, from, , to], i) => kind !== "variable" && from <= here && here <= to && (start = i));
      pick(api, {
        label: api.say("outline"),
        button,
        start,
        choices(query) {
          const words = query.toLowerCase().split(/\s+/);
          return all.filter(([name]) => words.every((word) => name.toLowerCase().includes(word))).map((symbol) => {
            const parts = symbol[0].split(".");
            return { text: query ? symbol[0] : parts[parts.length - 1], note: String(symbol[3]), kind: symbol[1], depth: query ? 0 : parts.length - 1, value: symbol };
          });
        },
        pick({ value: [, , start, , end] }) {
          const { address } = api.state();
          if (address) api.dispatch({ type: "open", address: { ...address, start, end } }, { history: "push", focus: true });
        },
      });
    }

    SourcePanel.keys.push({ keys: ["o"], says: "outline", run: () => symbols().length > 0 && show() });
    return { tools: () => (symbols().length ? [button] : []) };
  });
})();
