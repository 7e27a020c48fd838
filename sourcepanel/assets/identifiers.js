// @ts-check
/**
 * Identifiers lead to their definitions, and definitions to what uses them; any file or name opens by a few letters.
 *
 * In the lines an identifier is an element with a number (`a.q`, uncertain ones `a.q.l`). What the numbers mean
 * lies in a script per file, which comes when the reader first points at one.
 */
(() => {
  const S = SourcePanel.state;
  const { element } = SourcePanel.view;
  const { tool, pop, pick } = SourcePanel.windows;
  const USES = ["useCall", "useImport", "useBase", "useSet", "useOther"];
  const KINDS = ["class", "function", "method", "variable"];
  const [WEB, LENS] = ["M5 4.5 2 8l3 3.5M11 4.5 14 8l-3 3.5M9.2 3 6.8 13", "M3.5 2.5H9l3.5 3.5v7.5h-9zM9 2.5V6h3.5M6 9.5h4M6 11.5h2"];
  /** Lists longer than this start folded. */
  const MANY = 12;
  /** @type {Map<string, Meanings>} */
  const indexes = new Map();
  /** What fits whole scores about as much. */
  const WHOLE = 500;
  /** @type {Record<string, Names> | undefined} */
  let all;
  /** @type {Choice[] | undefined} */
  let entries;
  Object.assign(SourcePanel, {
    index: (/** @type {string} */ key, /** @type {Meanings} */ data) => indexes.set(key, data),
    names: (/** @type {Record<string, Names>} */ data) => (all = data),
  });

  (SourcePanel.features ??= []).push((api) => {
    const { say } = api;
    const open = () => /** @type {Address} */ (api.state().address);

    /** @param {Address} address */
    async function indexOf(address) {
      const key = S.key(address);
      if (!indexes.has(key)) await api.need(`xref/${S.dataPath(key)}`);
      return indexes.get(key);
    }

    /** A link to a place of this repository: in the panel, or on GitHub where the site has no such file. */
    function link(/** @type {string} */ path, /** @type {number} */ start, /** @type {number} */ end, /** @type {0 | 1} */ here, /** @type {(Node | string)[]} */ ...text) {
      const { repo } = open();
      const address = { repo, path, start, end };
      const href = here ? S.query("", address) : api.site.repositories[repo].blob + path + S.format(address).slice(S.key(address).length);
      return element("a", { href, ...(here ? { "data-src": S.format(address) } : { target: "_blank", rel: "noopener", class: "sp-out" }) }, ...text);
    }

    /** What a definition is, for people. @param {Meanings} index @param {number} n */
    function about(index, n) {
      const [path, name, , start, end, signature, doc] = index.definitions[n];
      const where = [index.paths[path], api.range({ repo: "", path: "", start, end: start })].filter(Boolean).join(" · ");
      const parts = [element("code", {}, element("b", {}, name || index.paths[path]), signature.replace(/^=/, " =")), element("span", {}, doc), element("small", {}, where)];
      return { parts, to: () => link(index.paths[path], start, end, index.here[path], ...parts) };
    }

    /** @param {Element} one @param {Meanings | undefined} index */
    const meaningOf = (one, index) => index?.meanings[Number(/** @type {HTMLElement} */ (one).dataset.m)];

    SourcePanel.card.hovers.push((target) => {
      const one = target.closest(".sp-code a.q");
      return one && {
        anchor: one,
        label: one.textContent ?? "",
        async fill(show) {
          const index = await indexOf(open());
          const [sure, ...to] = meaningOf(one, index) ?? [1];
          const doubt = sure ? [] : [element("p", { class: "sp-doubt" }, say("maybe"))];
          show(...doubt, ...to.map((n) => element("p", { class: "sp-about" }, ...about(/** @type {Meanings} */ (index), n).parts)));
        },
      };
    });

    document.addEventListener("click", async (event) => {
      const one = event.target instanceof Element ? event.target.closest(".sp-code a.q") : null;
      if (!one || event.button || !getSelection()?.isCollapsed) return;
      const index = await indexOf(open());
      const [sure, ...to] = meaningOf(one, index) ?? [1];
      if (!index || !to.length) return;
      const links = to.map((n) => about(index, n).to());
      // One sure place that is here opens at once; for all else the reader decides.
      if (sure && links.length === 1 && links[0].dataset.src) return void api.dispatch({ type: "open", address: /** @type {Address} */ (S.parse(links[0].dataset.src, api.repos)) }, { history: "push", focus: true });
      const doubt = sure ? [] : [element("p", { class: "sp-doubt" }, say("maybe"))];
      pop(api, { label: one.textContent ?? "" }, ...doubt, told(links));
    });

    /** @param {Node[]} links */
    const told = (links) => element("ul", { class: "sp-told" }, ...links.map((one) => element("li", {}, one)));
    const heading = (/** @type {string} */ text) => element("h3", {}, text);

    const usesButton = tool(say("usesTool"), WEB, uses, { "aria-haspopup": "dialog", "aria-expanded": "false" });
    const quickButton = tool(`${say("quick")} (p)`, LENS, quick, { "aria-haspopup": "dialog", "aria-expanded": "false" });

    /** Who uses what is open, by file; and where the names on the marked lines lead. */
    async function uses() {
      const address = open();
      const data = api.data(S.key(address));
      const index = await indexOf(address);
      const symbol = data?.kind === "file" ? S.symbolAt(data.symbols, address.start, address.end) : "";
      const name = symbol || address.path.split("/").pop() || "";
      if (!index) return void pop(api, { label: say("usesTool"), button: usesButton }, element("p", { class: "sp-none" }, say("noIndex")));
      const mine = index.own.filter(([n]) => index.definitions[n][1] === symbol);
      const own = mine.find(([n]) => index.definitions[n][3] <= address.start && address.start <= index.definitions[n][4]) ?? mine[0];
      const count = own ? own[3].reduce((sum, [, rows]) => sum + rows.length / 3, 0) : 0;
      const groups = (own?.[3] ?? []).map(([path, rows]) => {
        const links = [];
        for (let i = 0; i < rows.length; i += 3) {
          const [line, kind, sure] = rows.slice(i, i + 3);
          const to = link(index.paths[path], line, line, index.here[path], api.range({ repo: "", path: "", start: line, end: line }), " ", element("em", {}, say(USES[kind])));
          if (!sure) [to.className, to.title] = [`${to.className} l`, say("maybe")];
          links.push(to);
        }
        return element("details", { open: count <= MANY }, element("summary", {}, index.paths[path], element("small", {}, String(links.length))), told(links));
      });
      const seen = new Set();
      const named = [...(api.view()?.root.querySelectorAll(".sp-on a.q") ?? [])].flatMap((one) => {
        const [sure, ...to] = meaningOf(one, index) ?? [1];
        return to.filter((n) => !seen.has(n) && seen.add(n)).map((n) => {
          const made = about(index, n).to();
          if (!sure) [made.className, made.title] = [`${made.className} l`, say("maybe")];
          return made;
        });
      });
      pop(
        api,
        { label: say("uses", { name }), button: usesButton },
        heading(count ? say("usesCount", { name, count }) : say("unused", { name })),
        ...groups,
        ...(own?.[4].length ? [heading(say("overrides")), told(own[4].map((n) => about(index, n).to()))] : []),
        ...(named.length ? [heading(say("named")), told(named)] : []),
      );
    }

    /** How well letters fit a name: the whole of it, its start, a part, with or without underscores, or the letters in order; 0 for not at all. */
    function fit(/** @type {string} */ letters, /** @type {string} */ text, /** @type {string} */ kind) {
      const low = text.toLowerCase();
      const last = low.slice(low.lastIndexOf(kind === "file" ? "/" : ".") + 1);
      if (last === letters || (kind === "file" && last.replace(/\.\w+$/, "") === letters) || low === letters) return WHOLE - text.length / 100;
      if (last.startsWith(letters)) return 400 - text.length / 100;
      if (low.includes(letters)) return 300 - text.length / 100;
      if (low.replaceAll("_", "").includes(letters.replaceAll("_", ""))) return 200 - text.length / 100;
      let [at, score] = [-1, 50];
      for (const letter of letters) {
        const next = low.indexOf(letter, at + 1);
        if (next < 0) return 0;
        // A letter right after the last, or one that begins a word, is likelier meant.
        score += next === at + 1 ? 3 : /[^a-z0-9]/.test(low[next - 1] ?? "_") || text[next] !== low[next] ? 2 : -1;
        at = next;
      }
      return Math.max(1, score - text.length / 10);
    }

    /** All files and names, once they are here. @returns {Promise<Choice[]>} */
    const everything = async () => {
      if (!all) await api.need("xref/~.js");
      return (entries ??= Object.entries(all ?? {}).flatMap(([repo, { files, here, names }]) => [
        ...files.map((path, i) => ({ text: path, note: "", kind: "file", value: [repo, path, 0, 0, here[i]] })),
        ...names.map(([name, kind, file, start, end]) => ({ text: name, note: files[file], kind: KINDS[kind], value: [repo, files[file], start, end, here[file]] })),
      ]));
    };

    /** What fits best, those that are here first among equals; `path::name` looks in such files only. */
    function best(/** @type {Choice[]} */ of, /** @type {string} */ query, /** @type {number} */ least) {
      const [path, name] = /::/.test(query) ? query.toLowerCase().split("::") : ["", query.toLowerCase()];
      const letters = name.replace(/\s+/g, "");
      return of
        .filter(({ note }) => !path || note?.toLowerCase().endsWith(path))
        .map((entry) => ({ ...entry, score: fit(letters, entry.text, entry.kind ?? "") + (entry.value[4] ? 5 : 0) }))
        .filter(({ score }) => score > least)
        .sort((a, b) => b.score - a.score);
    }

    async function quick() {
      const of = await everything();
      if (!open()) api.dispatch({ type: "open", address: { repo: api.repos[0], path: "", start: 0, end: 0 } }, { history: "push" });
      pick(api, {
        label: say("quick"),
        button: quickButton,
        choices(query) {
          if (!query.trim()) return of.filter(({ value }) => value[4]).slice(0, 50);
          return best(of, query, 5).slice(0, 50).map((entry) => (entry.value[4] ? entry : { ...entry, note: `${entry.note} ↗` }));
        },
        pick({ value: [repo, path, start, end, here] }) {
          const address = { repo, path, start, end };
          if (here) api.dispatch({ type: "open", address }, { history: "push", focus: true });
          else window.open(api.site.repositories[repo].blob + path + S.format(address).slice(S.key(address).length), "_blank", "noopener");
        },
      });
    }

    /** For the site's search: the names that hold these letters as they stand, with links to them. @param {string} query @param {number} most */
    async function lookup(query, most) {
      const found = best(await everything(), query, 100).slice(0, most).map(({ text, note, kind, score, value: [repo, path, start, end, here] }) => {
        const address = { repo, path, start, end };
        const src = S.format(address);
        const href = here ? S.query(location.search, address) : api.site.repositories[repo].blob + path + src.slice(S.key(address).length);
        return { text, note, kind, href, src: here ? src : "", whole: score > WHOLE - 10 };
      });
      return { found, title: say("searchSource"), more: (/** @type {number} */ count) => say("searchMore", { count }) };
    }

    Object.assign(SourcePanel, { quick, lookup });
    SourcePanel.keys.push({ keys: ["u"], says: "keysUses", run: () => usesButton.click() });

    return { tools: (_, data) => (data?.kind === "file" ? [quickButton, usesButton] : [quickButton]) };
  });
})();
