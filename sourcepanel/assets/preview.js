// @ts-check
/** What a link leads to, beside it: a dozen lines of source, or the very section of a note. */
(() => {
  const S = SourcePanel.state;
  const { element, SECTION } = SourcePanel.view;
  const [LINES, BLOCKS] = [12, 4];
  const HEADING = "h1, h2, h3, h4, h5, h6";
  /** @type {Map<string, Record<string, string>>} Sections of other pages by the id of their heading. */
  const pages = new Map();
  Object.assign(SourcePanel, { sections: (/** @type {string} */ url, /** @type {Record<string, string>} */ data) => pages.set(url, data) });

  (SourcePanel.features ??= []).push((api) => {
    const root = new URL("..", api.base).href;

    /** @param {Address} address */
    async function source(address) {
      const key = S.key(address);
      if (!api.data(key)) await api.need(`src/${S.dataPath(key)}`);
      const data = api.data(key);
      const head = element("small", {}, [address.path, api.range(address)].filter(Boolean).join(" · "));
      if (data?.kind === "folder") return [head, data.entries.slice(0, LINES).map(([name, folder]) => name + (folder ? "/" : "")).join("\n")];
      if (data?.kind !== "file") return [head, api.say(data ? data.kind : "failed", { path: address.path })];
      const first = address.start || 1;
      const last = Math.min(data.lines, address.end ? Math.min(address.end, first + LINES - 1) : LINES);
      const lines = element("div", { class: "sp-lines" });
      for (let n = first; n <= last; n++) {
        const line = element("div", { class: "sp-l" });
        // Safe: render.py escaped all source text.
        line.innerHTML = data.sections[Math.floor((n - 1) / SECTION)].split("\n")[(n - 1) % SECTION];
        line.prepend(element("span", { class: "sp-n", "data-n": String(n) }));
        lines.append(line);
      }
      lines.style.setProperty("--sp-digits", String(String(last).length));
      return [head, element("div", { class: "sp-shown" }, lines)];
    }

    /** A copy that can stand beside the original: no id twice, no link that leads from the wrong page. */
    function copy(/** @type {Element[]} */ blocks, /** @type {string} */ base) {
      return blocks.map((block) => {
        const made = /** @type {Element} */ (document.importNode(block, true));
        for (const one of [made, ...made.querySelectorAll("*")]) {
          for (const name of ["id", "name", "for", "aria-describedby", "aria-current"]) one.removeAttribute(name);
          for (const name of ["href", "src"]) {
            if (one.hasAttribute(name)) one.setAttribute(name, new URL(one.getAttribute(name) ?? "", base).href);
          }
        }
        made.querySelectorAll(".headerlink, script").forEach((one) => one.remove());
        return made;
      });
    }

    /** The section that starts at an element of this page, or the block around it. @param {Element} at */
    function section(at) {
      const blocks = [at.matches(HEADING) ? at : (at.closest("p, li, tr, dd, dt, figure, pre") ?? at)];
      while (at.matches(HEADING) && blocks.length < BLOCKS) {
        const next = blocks[blocks.length - 1].nextElementSibling;
        if (!next || next.matches(HEADING)) break;
        blocks.push(next);
      }
      return copy(blocks, location.href);
    }

    SourcePanel.card.hovers.push((target) => {
      const link = /** @type {HTMLAnchorElement | null} */ (target.closest("a[href]"));
      if (!link || link.closest(".sp-panel, .sp-card, nav, header, .headerlink")) return null;
      const address = S.parse(link.dataset.src ?? "", api.repos);
      const label = link.textContent ?? "";
      // What stands open beside the text needs no preview, and Escape after a click is for the panel.
      if (address) return link.hasAttribute("aria-current") ? null : { anchor: link, label, fill: async (show) => show(...(await source(address))) };
      const to = new URL(link.href);
      let id = to.hash.slice(1);
      try {
        // Never a selector: an anchor may be Chinese, or begin with a digit.
        id = decodeURIComponent(id);
      } catch {
        // A stray percent sign: then it is meant as it stands.
      }
      if (to.pathname === location.pathname && to.host === location.host) {
        const at = id && document.getElementById(id);
        return at ? { anchor: link, label, fill: (show) => show(...section(at)) } : null;
      }
      if (!to.href.startsWith(root)) return null;
      const page = decodeURI(to.href.slice(root.length).replace(/[?#].*/, "")) || "index.html";
      if (!/\.html$|\/$/.test(page)) return null;
      return {
        anchor: link,
        label,
        async fill(show) {
          if (!pages.has(page)) await api.need(`notes/${page.split("/").map(encodeURIComponent).join("/").replace(/\/$/, "/index.html")}.js`);
          const sections = pages.get(page) ?? {};
          const html = sections[id] ?? (id ? undefined : Object.values(sections)[0]);
          if (html === undefined) return;
          // Parsed apart: nothing in it loads or runs. It is a piece of a page of this very site.
          const parsed = new DOMParser().parseFromString(html, "text/html");
          show(...copy([...parsed.body.children], new URL(to.pathname, location.href).href));
        },
      };
    });
    // The very link whose pointing brought this script.
    if (!api.state().address && matchMedia("(hover: hover)").matches) {
      document.querySelector("a:hover, a:focus-visible")?.dispatchEvent(new PointerEvent("pointerover", { bubbles: true, pointerType: "mouse" }));
    }
    return { state: () => SourcePanel.card.close() };
  });
})();
