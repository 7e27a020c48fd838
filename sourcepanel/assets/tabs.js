// @ts-check
/** Places that stay at hand: pinned ones in a row, and the way back through what the panel has shown. */
(() => {
  const S = SourcePanel.state;
  const { element, icon } = SourcePanel.view;
  const { tool } = SourcePanel.windows;
  const [BACK, ON, PIN, CROSS] = ["M10 3.5 5.5 8l4.5 4.5", "M6 3.5 10.5 8 6 12.5", "M9.5 2.5l4 4-2.2.8-2 2-.4 3-5.2-5.2 3-.4 2-2zM6.2 9.8 2.5 13.5", "m4.5 4.5 7 7m0-7-7 7"];

  (SourcePanel.features ??= []).push((api) => {
    const { say } = api;
    const bar = element("nav", { class: "sp-pins", "aria-label": say("pins") });
    /** @type {string[]} Pinned addresses. */
    let pins = [];
    /** @type {string[]} Addresses in the order in which they were shown. */
    let trail = [];
    let at = -1;
    /** The panel itself goes along the trail, and adds nothing to it. */
    let walking = false;
    const back = tool(`${say("back")} ([)`, BACK, () => walk(-1));
    const on = tool(`${say("forward")} (])`, ON, () => walk(1));
    const pin = tool(say("pin"), PIN, () => toggle(S.format(/** @type {Address} */ (api.state().address))), { "aria-pressed": "false" });

    /** @param {string} src */
    function show(src) {
      const address = S.parse(src, api.repos);
      if (address) api.dispatch({ type: "open", address }, { history: "push", focus: true });
    }

    /** @param {number} by */
    function walk(by) {
      if (!trail[at + by]) return false;
      at += by;
      walking = true;
      show(trail[at]);
      walking = false;
    }

    /** @param {string} src */
    function toggle(src) {
      pins = pins.includes(src) ? pins.filter((one) => one !== src) : [...pins, src];
      try {
        sessionStorage.setItem("sourcepanel.pins", JSON.stringify(pins));
      } catch {
        // Storage may be switched off; the address bar has them too.
      }
      api.remember("replace");
      draw();
    }

    function draw() {
      const { address } = api.state();
      const now = address ? S.format(address) : "";
      pin.setAttribute("aria-pressed", String(pins.includes(now)));
      back.disabled = at < 1;
      on.disabled = at >= trail.length - 1;
      if (!pins.length) return bar.remove();
      bar.replaceChildren(...pins.map((src) => {
        const to = /** @type {Address} */ (S.parse(src, api.repos));
        const name = to.path.replace(/\/$/, "").split("/").pop() || to.repo;
        const text = to.start ? `${name}:${to.start}` : name;
        const off = element("button", { type: "button", "aria-label": say("unpin", { path: text }), onclick: () => toggle(src) }, icon(CROSS));
        return element("span", {}, element("a", { href: S.query("", to), "data-src": src, title: `${to.path} ${api.range(to)}`, "aria-current": src === now ? "true" : null }, text), off);
      }));
      if (!bar.isConnected) api.panel().tools.before(bar);
    }

    SourcePanel.keys.push({ keys: ["[", "]"], says: "keysTrail", run: ({ key }) => walk(key === "[" ? -1 : 1) });

    return {
      tools: () => [back, on, pin],
      query: () => ({ pin: pins.join(",") }),
      sync(query) {
        const named = (query.get("pin") ?? "").split(",").filter((src) => S.parse(src, api.repos));
        if (query.get("src") && named.length) pins = named;
        else if (!pins.length) {
          try {
            pins = JSON.parse(sessionStorage.getItem("sourcepanel.pins") ?? "[]").filter((/** @type {string} */ src) => S.parse(src, api.repos));
          } catch {
            // As above, or not ours.
          }
        }
        if (api.state().address) draw();
      },
      state(before, { address, visit }) {
        if (!address) return bar.remove();
        const src = S.format(address);
        if (!walking && before.visit !== visit && trail[at] !== src) {
          trail = [...trail.slice(0, at + 1), src].slice(-50);
          at = trail.length - 1;
        }
        draw();
      },
    };
  });
})();
