// @ts-check
/**
 * The pieces of the panel that speak: head, foot and what stands in for a text that is not there.
 * Each is made from an address and its data, and knows nothing of what the panel does with it.
 */
(() => {
  const S = SourcePanel.state;
  const { element, icon, code, list, message } = SourcePanel.view;
  const CHECK = "m3 8.5 3.5 3.5 6.5-8";
  const CROSS = "m3.5 3.5 9 9m0-9-9 9";
  const LEAVE = "M6 3.5H3.5v9h9V10M9 3h4v4M13 3 7 9";

  /** @type {(site: SiteConfig) => Parts} */
  function parts({ strings, repositories }) {
    /** A sentence of the site's language with its gaps filled. @type {Parts["say"]} */
    const say = (name, values = {}) =>
      (strings[name] ?? name).replace(/\{(\w+)\}/g, (_, gap) => String(values[gap] ?? ""));

    /** @param {Address} address */
    const isFolder = ({ path }) => path === "" || path.endsWith("/");

    /** @type {Parts["range"]} */
    const range = ({ start, end }) => (start ? say(start === end ? "line" : "lines", { start, end }) : "");

    /** The page on GitHub at the pin. @param {Address} address */
    function github(address) {
      const pin = repositories[address.repo];
      const path = address.path.replace(/\/$/, "").split("/").map(encodeURIComponent).join("/");
      if (isFolder(address)) return pin.tree + path;
      return pin.blob + path + S.format(address).slice(S.key(address).length);
    }

    /** @param {Address} address */
    function githubButton(address) {
      const properties = { class: "sp-button", href: github(address), target: "_blank", rel: "noopener" };
      const text = say("github");
      return element("a", { ...properties, title: text }, element("span", { class: "sp-text" }, text), icon(LEAVE));
    }

    /** Repository, folders and file; all but the last open a listing. @param {Address} address */
    function crumbs({ repo, path }) {
      const names = path.split("/").filter(Boolean);
      return [repo, ...names].map((name, i) => {
        if (i === names.length) return element("b", {}, name);
        const at = { repo, path: names.slice(0, i).map((part) => `${part}/`).join(""), start: 0, end: 0 };
        return element("a", { href: github(at), "data-src": S.format(at) }, name);
      });
    }

    /** @param {Address} address @param {Data | undefined} data */
    function symbolOf({ start, end }, data) {
      if (data?.kind === "file") return S.symbolAt(data.symbols, start, end);
      if (data?.kind !== "absent") return "";
      return data.links.find((link) => link[0] === start && link[1] === end)?.[2] ?? "";
    }

    return {
      say,
      range,

      head(address, data, close) {
        const { ref, commit } = repositories[address.repo];
        const facts = [];
        const symbol = symbolOf(address, data);
        if (symbol) facts.push(element("code", {}, symbol));
        if (address.start) facts.push(element("span", {}, range(address)));
        else if (data && "lines" in data && data.lines) facts.push(element("span", {}, say("total", { count: data.lines })));
        const locked = data?.kind === "absent" || data?.kind === "folder";
        const blob = data && "blob" in data ? data.blob : "";
        const title = data ? say(locked ? "verifiedLock" : "verifiedTitle", { ref, commit, blob }) : null;
        const verified = data ? [icon(CHECK), say("verified"), " · "] : [];
        facts.push(element("span", { class: "sp-pin", title }, ...verified, `${ref} @ ${commit.slice(0, 8)}`));
        const button = { class: "sp-button sp-close", type: "button", "aria-label": say("close"), title: `${say("close")} (Esc)` };
        return [
          element(
            "div",
            { class: "sp-bar" },
            element("div", { class: "sp-path" }, ...crumbs(address)),
            githubButton(address),
            element("button", { ...button, onclick: close }, icon(CROSS)),
          ),
          element("div", { class: "sp-facts" }, ...facts),
        ];
      },

      foot({ repo }) {
        const [notice, href] = repositories[repo].license;
        return [notice, " · ", element("a", { href, target: "_blank", rel: "noopener" }, say("license"))];
      },

      label: (address) => say(isFolder(address) ? "folder" : "label", { path: address.path || address.repo }),

      view(address, data) {
        const { repo, path } = address;
        const label = say(data.kind === "folder" ? "folder" : "code", { path: path || repo });
        if (data.kind === "folder") {
          const entries = data.entries.map(([name, folder, here]) => {
            const at = { repo, path: path + name + (folder ? "/" : ""), start: 0, end: 0 };
            const title = here ? null : say("external", { name });
            return { text: name, href: github(at), src: here ? S.format(at) : null, folder, title };
          });
          return list(entries, { label, notice: data.complete ? "" : say("partial") });
        }
        if (data.kind === "absent") {
          const entries = data.links.map(([start, end, symbol]) => {
            const at = { repo, path, start, end };
            return { text: [symbol, range(at)].filter(Boolean).join(" · "), href: github(at), src: null, folder: false, title: null };
          });
          return message(say("absent"), [githubButton(address)], { entries });
        }
        if (data.kind === "binary") return message(say("binary"), [githubButton(address)]);
        const href = (/** @type {number} */ line) => S.query("", { repo, path, start: line, end: line });
        return code(data, { label, notice: data.notice && say(data.notice), href });
      },

      loading: ({ path }) => message(say("loading", { path }), [], { className: "sp-loading" }),

      failed(address, retry) {
        const again = element("button", { class: "sp-button", type: "button", onclick: retry }, say("retry"));
        return message(say("failed", { path: address.path }), [again, githubButton(address)]);
      },
    };
  }

  Object.assign(SourcePanel, { parts });
})();
