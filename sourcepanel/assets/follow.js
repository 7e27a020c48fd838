// @ts-check
/**
 * Reading together: the panel follows the text, or leads through its references one by one.
 *
 * Following opens what the current paragraph speaks of, and only when that paragraph changes. A link that the
 * reader clicked stays open while it is in view, and whoever touches the panel pauses it until he resumes.
 */
(() => {
  const S = SourcePanel.state;
  const { element } = SourcePanel.view;
  const { tool } = SourcePanel.windows;
  const BLOCK = "p, li, tr, dd, dt, h1, h2, h3, h4, h5, h6, figure, blockquote";
  const [EYE, LIST] = ["M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.2a1.8 1.8 0 1 0 .01 0", "M6 4h8M6 8h8M6 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01"];

  (SourcePanel.features ??= []).push((api) => {
    const { say } = api;
    /** @type {"" | "follow" | "step"} */
    let mode = "";
    let paused = false;
    /** @type {HTMLElement | null} The link of the current step. */
    let at = null;
    /** @type {Element | null} The paragraph that is shown, and a link that the reader chose himself. */
    let shown = null;
    /** @type {Element | null} */
    let chosen = null;
    /** @type {Element | undefined} */
    let tied;
    let frame = 0;
    /** @type {HTMLElement} */
    const bar = element("div", { class: "sp-tour", role: "group" });
    /** @type {HTMLElement[]} The links that the list was made of. */
    let listed = [];
    const eye = tool(say("follow"), EYE, () => set(mode === "follow" ? "" : "follow"), { "aria-pressed": "false" });
    const list = tool(say("tour"), LIST, () => (mode === "step" ? set("") : step(0)), { "aria-pressed": "false" });

    const links = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".sp-link[data-src]")]).filter((link) => link.getClientRects().length && !link.closest(".sp-card"));
    const blockOf = (/** @type {Element} */ link) => link.closest(BLOCK) ?? link;
    /** Height of the window that the panel leaves free. */
    const room = () => (document.documentElement.dataset.sp === "sheet" ? innerHeight - api.panel().panel.offsetHeight : innerHeight);

    /** @param {HTMLElement} link */
    function open(link) {
      const address = S.parse(link.dataset.src ?? "", api.repos);
      if (address) api.dispatch({ type: "open", address }, { history: api.state().address ? "replace" : "push" });
    }

    /** @param {Element} [block] */
    function tie(block) {
      tied?.classList.remove("sp-here");
      tied = block;
      tied?.classList.add("sp-here");
    }

    /** @param {"" | "follow" | "step"} next */
    function set(next) {
      [mode, paused, shown, chosen] = [next, false, null, null];
      if (!mode) tie();
      show();
      if (api.state().address) api.remember("replace");
      if (mode === "follow") look();
    }

    function show() {
      eye.setAttribute("aria-pressed", String(mode === "follow"));
      list.setAttribute("aria-pressed", String(mode === "step"));
      if (!mode) return bar.remove();
      const { tools } = api.panel();
      if (!bar.isConnected) tools.after(bar);
      bar.setAttribute("aria-label", say(mode === "step" ? "tour" : "follow"));
      if (mode === "step") return tour();
      listed = [];
      const again = paused ? [element("button", { class: "sp-button", type: "button", onclick: () => set("follow") }, say("resume"))] : [];
      bar.replaceChildren(element("p", {}, say(paused ? "paused" : "following")), ...again);
    }

    /** The list of all references; made anew only when the page is another. */
    function tour() {
      const all = links();
      if (all.length !== listed.length || all[0] !== listed[0]) {
        listed = all;
        let heading = "";
        const items = [...document.querySelectorAll("h2, h3, .sp-link[data-src]")].flatMap((one) => {
          const i = all.indexOf(/** @type {any} */ (one));
          const text = (one.textContent ?? "").replace(/¶\s*$/, "").trim();
          if (/^H\d$/.test(one.tagName)) heading = text;
          return i < 0 ? [] : [element("li", {}, element("button", { type: "button", onclick: () => go(all[i]) }, text, element("small", {}, heading)))];
        });
        const move = (/** @type {number} */ by, /** @type {string} */ sign, /** @type {string} */ name) => element("button", { class: "sp-button", type: "button", "aria-label": say(name), onclick: () => step(by) }, sign);
        bar.replaceChildren(element("p", {}, move(-1, "‹", "previous"), element("span", {}), move(1, "›", "next")), element("ol", {}, ...items));
      }
      const n = at ? all.indexOf(at) : -1;
      const buttons = bar.querySelectorAll("li button");
      /** @type {any} */ (bar.querySelector("span")).textContent = say("step", { n: n + 1, count: all.length });
      buttons.forEach((button, i) => (i === n ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current")));
      buttons[n]?.scrollIntoView({ block: "nearest" });
    }

    /** @param {HTMLElement} link */
    function go(link) {
      at = link;
      mode = "step";
      open(link);
      tie(blockOf(link));
      show();
      const { top, bottom } = link.getBoundingClientRect();
      const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "instant" : "smooth";
      if (top < 80 || bottom > room() - 24) scrollBy({ top: top - room() / 3, behavior });
    }

    /** @param {number} by */
    function step(by) {
      const all = links();
      let i = at ? all.indexOf(at) : -1;
      if (i < 0) {
        const src = api.state().address && S.format(/** @type {Address} */ (api.state().address));
        i = all.findIndex((link) => link.dataset.src === src);
        if (i < 0) [i, by] = [all.findIndex((link) => link.getBoundingClientRect().bottom > 0), 0];
      }
      const link = all[Math.max(0, Math.min(all.length - 1, i + by))];
      return link ? go(link) : false;
    }

    /** Where the eye is: the line moves down the window as the page moves up, so that the last paragraph has its turn. */
    function look() {
      frame = 0;
      if (mode !== "follow" || paused) return;
      const whole = document.documentElement.scrollHeight - innerHeight;
      const line = room() * (0.2 + 0.7 * Math.min(1, whole > 0 ? scrollY / whole : 0));
      const block = links().map(blockOf).filter((one) => one.getBoundingClientRect().top <= line).pop() ?? null;
      if (!block || block === shown) return;
      if (chosen?.isConnected && block !== blockOf(chosen)) {
        const { top, bottom } = chosen.getBoundingClientRect();
        if (bottom > 0 && top < room()) return;
      }
      // A link that was chosen in this very paragraph is what to show of it.
      const mine = chosen && block === blockOf(chosen);
      [shown, chosen] = [block, null];
      tie(block);
      const link = /** @type {HTMLElement | null} */ (block.matches(".sp-link") ? block : block.querySelector(".sp-link[data-src]"));
      if (link && !mine) open(link);
    }

    addEventListener("scroll", () => {
      if (mode === "follow") frame ||= requestAnimationFrame(look);
    }, { passive: true });
    document.addEventListener("click", ({ target }) => {
      const link = target instanceof Element ? target.closest(".sp-link[data-src]") : null;
      if (mode === "follow" && link) chosen = link;
    });
    let watched = false;
    function watch() {
      const { panel } = api.panel();
      watched = true;
      for (const name of ["pointerdown", "wheel", "keydown"]) {
        panel.addEventListener(name, ({ target }) => {
          if (mode !== "follow" || paused || /** @type {Element} */ (target).closest(".sp-tools, .sp-tour, .sp-grip")) return;
          paused = true;
          show();
          api.announce(say("paused"));
        }, { passive: true });
      }
    }

    SourcePanel.keys.push(
      { keys: ["j", "k"], says: "keysStep", where: "page", run: ({ key }) => step(key === "j" ? 1 : -1) },
      { keys: ["p"], says: "keysQuick", where: "page", run: () => void api.later().then(() => SourcePanel.quick?.()) },
    );

    return {
      tools: () => [eye, list],
      query: () => ({ mode }),
      sync(query) {
        const next = query.get("src") ? query.get("mode") : "";
        const known = next === "follow" || next === "step" ? next : "";
        if (known === mode) return;
        [mode, paused, shown, chosen] = [known, false, null, null];
        if (!mode) tie();
        if (api.state().address) show();
      },
      state(before, now) {
        if (!now.address) {
          [mode, at] = ["", null];
          tie();
          return bar.remove();
        }
        if (!watched) watch();
        if (mode === "step" && before.visit !== now.visit) {
          const src = S.format(now.address);
          if (at?.dataset.src !== src || !at.isConnected) at = links().find((link) => link.dataset.src === src) ?? at;
          if (at) tie(blockOf(at));
        }
        if (mode && (before.visit !== now.visit || !bar.isConnected)) show();
      },
    };
  });
})();
