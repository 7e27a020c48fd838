/**
 * Files and symbols of the pinned source in the theme's search box, above the pages: a result opens the panel.
 *
 * They come from the panel's own list of names, which is loaded when a reader first asks for what could be a name;
 * the search index does not grow by them.
 */
(function () {
  "use strict";
  const FIELD = "[data-md-component=search-query]";
  const [SHOWN, MOST] = [3, 20];
  const NAME = /^[\w./:-]*[A-Za-z_][\w./:-]*$/;
  let turn = 0;

  /** What of a query could be a name; empty for anything else. @param {string} query */
  function name(query) {
    const text = query.replace(/[（）()“”"'`‘’《》【】]/g, " ").trim().replace(/^-+/, "");
    const plain = query.trim().startsWith("--") ? text.replaceAll("-", "_") : text;
    const joined = plain.replace(/\s+/g, "_");
    return NAME.test(joined) && joined.length > 2 ? joined : "";
  }

  /** The place for the results, made once. */
  function place() {
    const result = document.querySelector(".md-search-result");
    const list = result?.querySelector(".md-search-result__list");
    if (!result || !list) return null;
    let section = /** @type {HTMLElement | null} */ (result.querySelector(".search-source"));
    if (!section) {
      section = document.createElement("section");
      section.className = "search-source";
      section.hidden = true;
      list.before(section);
    }
    return section;
  }

  /** @param {string} tag @param {string} type @param {(Node | string)[]} children */
  function element(tag, type, ...children) {
    const made = document.createElement(tag);
    if (type) made.className = type;
    made.append(...children);
    return made;
  }

  /** A name with the letters that were asked for marked. @param {string} text @param {string} letters */
  function marked(text, letters) {
    const at = text.toLowerCase().indexOf(letters.toLowerCase());
    if (at < 0) return element("code", "", text);
    return element("code", "", text.slice(0, at), element("mark", "", text.slice(at, at + letters.length)), text.slice(at + letters.length));
  }

  /** @param {Found} found @param {string} letters */
  function row({ text, note, kind, href, src, whole }, letters) {
    const article = element("article", "search-source__name", marked(text, letters), " ", element("small", "", [note, src ? "" : "↗"].filter(Boolean).join(" ")));
    // The theme's Enter goes to the best result, and reads its score here.
    article.dataset.mdScore = whole ? "1e9" : "0";
    const link = /** @type {HTMLAnchorElement} */ (element("a", "search-source__link sp-node", article));
    link.href = href;
    link.tabIndex = -1;
    link.dataset.kind = kind;
    if (src) link.dataset.src = src;
    else [link.target, link.rel] = ["_blank", "noopener"];
    return element("li", "", link);
  }

  async function show(/** @type {string} */ query) {
    const mine = ++turn;
    const section = place();
    if (!section) return;
    const letters = name(query);
    if (letters) await globalThis.SourcePanel?.later?.();
    const { found = [], title = "", more: told = String } = (letters && (await globalThis.SourcePanel?.lookup?.(letters, MOST))) || {};
    // Meanwhile the reader may have typed on.
    if (mine !== turn) return;
    const part = letters.split("::").pop() ?? letters;
    section.setAttribute("aria-label", title);
    const rows = found.map((one) => row(one, part));
    const more = rows.slice(SHOWN);
    section.replaceChildren(
      element("h2", "search-source__title", title),
      element("ol", "", ...rows.slice(0, SHOWN)),
      ...(more.length ? [element("details", "", element("summary", "", told(more.length)), element("ol", "", ...more))] : []),
    );
    section.hidden = !rows.length;
    section.dataset.query = query;
  }

  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest(".search-source__link[data-src]") : null;
    const toggle = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-md-toggle=search]"));
    // The panel opens it, and the box would lie over it. Who hears the click first is not certain.
    if (link) setTimeout(() => event.defaultPrevented && toggle?.checked && toggle.click());
  });
  for (const name of ["keyup", "focusin"]) {
    document.addEventListener(name, ({ target }) => {
      if (!(target instanceof HTMLInputElement) || !target.matches(FIELD)) return;
      if (target.value !== (place()?.dataset.query ?? "")) show(target.value);
    });
  }
  document.addEventListener("reset", () => show(""));
})();
