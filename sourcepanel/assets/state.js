// @ts-check
/**
 * What the panel shows, as values: addresses and one reducer. Nothing here touches the page.
 *
 * An address is written `Repo/path/file.py#L10-L20` in a page and `?src=Repo/path/file.py:L10-L20` in the
 * browser's bar, where a `#` would end the query. A path that ends in a slash is a folder.
 *
 * @typedef {{ repo: string, path: string, start: number, end: number }} Address
 *   `start` and `end` are 1-based and inclusive; both 0 when no line is named.
 *
 * @typedef {object} State
 * @property {Address | null} address  What is open; null when the panel is closed.
 * @property {"closed" | "loading" | "ready" | "failed"} status
 * @property {number} anchor  The line from which a shift-click extends.
 * @property {number} visit  Grows with each opening: tells a new visit to the same place from a redraw.
 *
 * @typedef {{ type: "open", address: Address }
 *   | { type: "loaded" | "failed", key: string }
 *   | { type: "select", line: number, extend: boolean }
 *   | { type: "close" }} Action
 */
(() => {
  /** @type {State} */
  const initial = { address: null, status: "closed", anchor: 0, visit: 0 };

  /**
   * Parse either spelling; null for what is none. A reversed range is turned round.
   * @param {string} text
   * @param {Iterable<string>} repos  Names of the pinned repositories.
   * @returns {Address | null}
   */
  function parse(text, repos) {
    const slash = text.indexOf("/");
    const repo = text.slice(0, slash);
    if (slash < 1 || ![...repos].includes(repo)) return null;
    const match = /^(.*?)(?:[#:]L(\d{1,9})(?:-L?(\d{1,9}))?)?$/s.exec(text.slice(slash + 1));
    if (!match) return null;
    const path = match[1];
    if (path.replace(/\/$/, "").split("/").some((part) => part === "." || part === ".." || (part === "" && path !== ""))) {
      return null;
    }
    const [a, b] = [Number(match[2] || 0), Number(match[3] || match[2] || 0)];
    return { repo, path, start: Math.min(a, b), end: Math.max(a, b) };
  }

  /** The file or folder of an address, the key of its data. @param {Address} address */
  const key = (address) => `${address.repo}/${address.path}`;

  /** @param {Address} address @param {string} mark */
  function lines({ start, end }, mark) {
    if (!start) return "";
    return `${mark}L${start}${end !== start ? `-L${end}` : ""}`;
  }

  /** The spelling of pages. @param {Address} address */
  const format = (address) => key(address) + lines(address, "#");

  /**
   * A page's query with `src` (and what goes with it) set, or taken out for null; other parameters stay as they are.
   * @param {string} search
   * @param {Address | null} address
   * @param {Record<string, string>} [more]  Parameters that stand only beside `src`; empty ones are left out.
   */
  function query(search, address, more = {}) {
    const rest = search.replace(/^\?/, "").split("&").filter((part) => part && !["src", ...Object.keys(more)].includes(part.split("=")[0]));
    const safe = (/** @type {string} */ text) => encodeURIComponent(text).replace(/%(2F|3A|2C)/g, decodeURIComponent);
    if (address) rest.push(`src=${safe(key(address))}${lines(address, ":")}`, ...Object.entries(more).filter(([, text]) => text).map(([name, text]) => `${name}=${safe(text)}`));
    return rest.length ? `?${rest.join("&")}` : "";
  }

  /**
   * The address that a page's query names.
   * @param {string} search
   * @param {Iterable<string>} repos
   */
  function fromQuery(search, repos) {
    const src = new URLSearchParams(search).get("src");
    return src ? parse(src, repos) : null;
  }

  /**
   * Path of a data file below `src/`, each segment percent-encoded; `data_path` in panel.py says why `~` and `_`.
   * @param {string} file  As `key` gives it.
   */
  function dataPath(file) {
    const parts = file.split("/").map((part) => part.replace(/^[.~]|^$/, "~$&"));
    const last = parts.pop();
    return [...parts.map((part) => part.replace(/\.js_*$/, "$&_")), `${last}.js`].map(encodeURIComponent).join("/");
  }

  /**
   * @param {State} state
   * @param {Action} action
   * @returns {State}
   */
  function reduce(state, action) {
    const { address } = state;
    if (action.type === "open") {
      const same = address !== null && state.status === "ready" && key(address) === key(action.address);
      const status = same ? "ready" : "loading";
      return { address: action.address, status, anchor: action.address.start, visit: state.visit + 1 };
    }
    if (action.type === "close") return { ...initial, visit: state.visit };
    // Anything else is about what is open now; news of a file the reader has left is no news.
    if (!address) return state;
    if (action.type === "select") {
      const { line, extend } = action;
      const anchor = extend && state.anchor ? state.anchor : line;
      return { ...state, anchor, address: { ...address, start: Math.min(anchor, line), end: Math.max(anchor, line) } };
    }
    if (state.status !== "loading" || action.key !== key(address)) return state;
    return { ...state, status: action.type === "loaded" ? "ready" : "failed" };
  }

  /**
   * The name of what a range stands for: the definition it is, else the innermost one around it.
   * @param {SymbolRow[]} symbols
   * @param {number} start
   * @param {number} end
   */
  function symbolAt(symbols, start, end) {
    if (!start) return "";
    /** @type {SymbolRow | null} */
    let best = null;
    for (const symbol of symbols) {
      const [, kind, from, line, to] = symbol;
      if ((from === start && to === end) || (line === start && start === end)) return symbol[0];
      const around = kind !== "variable" && from <= start && end <= to;
      if (around && (!best || to - from <= best[4] - best[2])) best = symbol;
    }
    return best ? best[0] : "";
  }

  globalThis.SourcePanel = Object.assign(globalThis.SourcePanel ?? {}, {
    state: { initial, parse, format, query, fromQuery, dataPath, key, reduce, symbolAt },
  });
})();
