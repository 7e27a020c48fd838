// @ts-check
/** The open lines at another version: a button where they differ there, and how, by colour and by sign. */
(() => {
  const S = SourcePanel.state;
  const { element } = SourcePanel.view;
  /** @type {Map<string, Record<string, Elsewhere>>} */
  const known = new Map();
  const TAGS = { "+": "ins", "-": "del", "=": "div", "": "div" };
  const SIGNS = { "+": "+", "-": "−", "=": " ", "": " " };
  /** @type {Record<Elsewhere["status"], string>} */
  const SAYS = { changed: "versionChanged", cosmetic: "versionCosmetic", moved: "versionMoved", gone: "versionGone" };

  /** Called by the data files. */
  SourcePanel.version = (commit, key, ranges) => void known.set(`${commit}/${key}`, ranges);

  (SourcePanel.features ??= []).push((api) => {
    const { say } = api;
    /** @type {Map<string, HTMLButtonElement>} */
    const buttons = new Map();
    let shut = () => {};

    /** @param {OtherVersion} version */
    function buttonOf(version) {
      const onclick = () => show(version);
      const button = buttons.get(version.commit) ?? element("button", { class: "sp-button", type: "button", "aria-haspopup": "dialog", "aria-expanded": "false", onclick }, say("version", { version: version.name }));
      buttons.set(version.commit, button);
      return button;
    }

    /** Those at which the open lines are other ones. @returns {HTMLButtonElement[]} */
    function tools() {
      const { address } = api.state();
      const data = address && api.data(S.key(address));
      if (!address || data?.kind !== "file") return [];
      const here = api.site.repositories[address.repo].versions ?? [];
      return here.filter(({ commit }) => data.versions?.[commit]?.includes(`${address.start}-${address.end}`)).map(buttonOf);
    }

    /** @param {Elsewhere["rows"][number]} row */
    function line([sign, number, html]) {
      const code = element("span");
      // Safe: render.py escaped all source text.
      code.innerHTML = html;
      return element(TAGS[sign], { class: `sp-l${sign ? "" : " sp-near"}` }, element("small", {}, String(number)), element("b", {}, SIGNS[sign]), code, "\n");
    }

    /** Long stretches of equal lines open on a click. @param {Elsewhere["rows"]} rows */
    function folded(rows) {
      /** @type {Node[]} */
      const nodes = [];
      for (let i = 0, j = 0; i < rows.length; i = j) {
        while (j < rows.length && rows[j][0] === rows[i][0]) j += 1;
        const run = rows.slice(i, j).map(line);
        if (rows[i][0] === "=" && run.length > 12) {
          const middle = run.splice(3, run.length - 6);
          run.splice(3, 0, element("details", {}, element("summary", {}, say("more", { count: middle.length })), ...middle));
        }
        nodes.push(...run);
      }
      return nodes;
    }

    /** @param {OtherVersion} version */
    async function show(version) {
      const { address } = api.state();
      if (!address) return;
      const name = `${version.commit}/${S.key(address)}`;
      if (!known.has(name)) await api.need(`versions/${version.commit}/${S.dataPath(S.key(address))}`);
      if (api.state().address !== address) return;
      const there = known.get(name)?.[`${address.start}-${address.end}`];
      if (!there) return api.announce(say("failed", { path: address.path }));
      const { status, unsure, path, start, end, rows } = there;
      const title = say("version", { version: version.name });
      const pin = api.site.repositories[address.repo].ref;
      const count = (/** @type {string} */ sign) => rows.filter((row) => row[0] === sign).length;
      const what = [say(SAYS[status]), unsure && say("versionUnsure"), count("+") && `+${count("+")}`, count("-") && `−${count("-")}`].filter(Boolean).join(" ");
      const place = [path, api.range({ ...address, start, end })].filter(Boolean).join(" ");
      const lines = element("div", { class: "sp-lines", translate: "no" }, ...folded(rows));
      lines.style.setProperty("--sp-digits", String(Math.max(...rows.map((row) => String(row[1]).length))));
      const scroll = element("div", { class: "sp-then", role: "region", tabindex: "0", "aria-label": `${title} ${place}` }, lines);
      // Arrows scroll here; the window would walk its buttons.
      scroll.onkeydown = (/** @type {KeyboardEvent} */ event) => /^Arrow/.test(event.key) && event.stopPropagation();
      const head = element("div", { class: "sp-facts" }, element("code", {}, version.name), element("span", {}, place), element("span", {}, what));
      if (path) head.append(element("a", { href: version.blob + path.split("/").map(encodeURIComponent).join("/") + S.format({ ...address, start, end }).slice(S.key(address).length), target: "_blank", rel: "noopener" }, say("github")));
      const back = `${say("versionBack", { ref: pin })} (Esc)`;
      head.append(element("button", { class: "sp-button sp-close", type: "button", "aria-label": back, title: back, onclick: () => shut() }, "✕"));
      const closed = () => api.state().address === address && api.announce(say("versionPin", { ref: pin }));
      shut = SourcePanel.windows.pop(api, { label: title, button: buttonOf(version), closed }, head, scroll);
      if (!scroll.isConnected) return;
      scroll.focus({ preventScroll: true });
      const first = lines.querySelector("ins, del");
      if (first) scroll.scrollTop = first.offsetTop - scroll.offsetTop - 60;
      api.announce([title, place, what].filter(Boolean).join(" "));
    }

    SourcePanel.keys.push({ keys: ["v"], says: "versionKey", run: () => (tools().length ? void tools()[0].click() : false) });
    return {
      tools,
      state(before, now) {
        if (before.address !== now.address) shut();
      },
    };
  });
})();
