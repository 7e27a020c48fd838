// @ts-check
/**
 * The source panel: opens what a source link points at beside the text.
 *
 * One direction: an event becomes an action, `reduce` (state.js) makes the next state, `render` shows it.
 * Clicks are caught on the document, so links that a theme swaps in later work too. Data comes as classic
 * scripts, which also load at `file://`.
 */
(() => {
  const S = SourcePanel.state;
  const { element } = SourcePanel.view;
  const base = new URL(".", /** @type {HTMLScriptElement} */ (document.currentScript).src).href;
  const html = document.documentElement;
  const wide = matchMedia("(min-width: 960px)");
  const narrow = matchMedia("(max-width: 719px)");
  /** Views kept after the reader moved on, so that going back paints at once. */
  const KEEP = 6;

  /** @type {string[]} Names of the pinned repositories. */
  let repos = [];
  /** @type {Parts} */
  let parts;
  /** @type {Map<string, Data>} Data of every file loaded so far. */
  const files = new Map();
  /** @type {Map<string, View>} */
  const views = new Map();
  /** @type {Map<string, Promise<void>>} Scripts on their way, by path. */
  const waiting = new Map();
  /** Features that nobody needs before the panel opens come with its first file. */
  /** @type {Promise<void> | undefined} */
  let late;
  let current = S.initial;
  /** @type {HTMLElement | null} The link that opened the panel; it gets the focus back. */
  let opener = null;
  /** @type {PanelParts} Made on first use. */
  let ui;
  /** @type {Feature[]} What other scripts add: each is asked at fixed points, none knows another. */
  let features = [];

  // --- events become actions ---------------------------------------------------------------------------------------

  /**
   * @param {Action} action
   * @param {{ history?: "push" | "replace" | "", focus?: boolean }} [options]
   */
  function dispatch(action, { history: how = "", focus = false } = {}) {
    const before = current;
    current = S.reduce(before, action);
    const key = current.address && S.key(current.address);
    if (key && files.has(key)) current = S.reduce(current, { type: "loaded", key });
    if (current === before) return;
    if (how) remember(how);
    render(before, focus);
    if (key && action.type === "open" && current.status === "loading") load(key);
  }

  /** Write the state into the address bar. @param {"push" | "replace"} how */
  function remember(how) {
    const more = Object.assign({}, ...features.map((feature) => feature.query?.()));
    const query = S.query(location.search, current.address, more);
    if (query === location.search) return;
    history[`${how}State`](history.state, "", location.pathname + query + location.hash);
  }

  /** Follow the address bar: at the start, after Back or Forward, after the theme swapped the page. */
  function sync() {
    const address = S.fromQuery(location.search, repos);
    for (const feature of features) feature.sync?.(new URLSearchParams(location.search));
    if (address && !(current.address && S.format(address) === S.format(current.address))) dispatch({ type: "open", address });
    else if (!address) dispatch({ type: "close" });
    trace();
  }

  /** @param {MouseEvent} event */
  function onClick(event) {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.altKey) return;
    const target = /** @type {Element} */ (event.target);
    const number = target.closest?.(".sp-panel .sp-n");
    if (number) {
      event.preventDefault();
      getSelection()?.removeAllRanges();
      dispatch(
        { type: "select", line: Number(number.getAttribute("data-n")), extend: event.shiftKey },
        { history: "replace" },
      );
      return;
    }
    const link = /** @type {HTMLElement | null} */ (event.shiftKey ? null : target.closest?.("a[data-src]"));
    const address = link && S.parse(link.dataset.src ?? "", repos);
    if (!link || !address || !link.matches(".sp-link, .sp-node, .sp-panel a")) return;
    event.preventDefault();
    if (!ui?.panel.contains(link)) opener = link;
    dispatch({ type: "open", address }, { history: "push", focus: true });
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || !current.address) return;
    const field = /** @type {Element} */ (event.target).closest?.("input, textarea, select, [contenteditable]");
    // Elsewhere on the page Escape leaves a field: the theme's search, for one.
    if (field && !ui.panel.contains(field)) return;
    close();
  }

  function close() {
    dispatch({ type: "close" }, { history: "push", focus: true });
  }

  // --- data --------------------------------------------------------------------------------------------------------

  /** Run a script once, however often it is asked for meanwhile; also done when there is none. @param {string} path */
  function need(path) {
    const asked = waiting.get(path) ?? new Promise((done) => {
      const script = element("script", { src: base + path, async: true });
      script.onload = script.onerror = () => {
        script.remove();
        waiting.delete(path);
        done();
      };
      document.head.append(script);
    });
    waiting.set(path, asked);
    return asked;
  }

  const later = () => (late ??= need("later.js"));

  /** @param {string} key */
  async function load(key) {
    await need(`src/${S.dataPath(key)}`);
    dispatch({ type: files.has(key) ? "loaded" : "failed", key }, { focus: ui.body.contains(document.activeElement) });
    // After the lines stand: until then the page has better things to do.
    requestAnimationFrame(later);
  }

  /** The view of what is open, made on the first visit. @param {Address} address */
  function viewOf(address) {
    const key = S.key(address);
    const view = views.get(key) ?? makeView(address, /** @type {Data} */ (files.get(key)));
    views.delete(key);
    views.set(key, view);
    for (const [old, { dispose }] of views) {
      if (views.size <= KEEP) break;
      dispose();
      views.delete(old);
    }
    return view;
  }

  /** @param {Address} address @param {Data} data */
  function makeView(address, data) {
    const view = parts.view(address, data);
    for (const feature of features) feature.view?.(view, address, data);
    return view;
  }

  // --- the page ----------------------------------------------------------------------------------------------------

  /** Build the panel on its first use; `document.body` may be missing before. */
  function build() {
    const grip = element("div", { class: "sp-grip", role: "separator", tabindex: "0", "aria-label": parts.say("resize") });
    const head = element("div", { class: "sp-head" });
    const tools = element("div", { class: "sp-tools", role: "toolbar", "aria-label": parts.say("tools") });
    const body = element("div", { class: "sp-body" });
    const foot = element("div", { class: "sp-foot" });
    const live = element("div", { class: "sp-live", role: "status", "aria-live": "polite" });
    const panel = element("div", { class: "sp-panel", id: "sp-panel", tabindex: "-1", hidden: true }, grip, head, tools, body, foot);
    document.body.append(panel, live);
    ui = { panel, grip, head, tools, body, foot, live };
    SourcePanel.resize(ui, { layout, close });
    for (const query of [wide, narrow]) query.addEventListener("change", arrange);
  }

  const layout = () => (wide.matches ? "dock" : narrow.matches ? "sheet" : "drawer");

  /** Dock, drawer or bottom sheet: the style sheet does the rest. */
  function arrange() {
    if (!current.address) return void delete html.dataset.sp;
    html.dataset.sp = layout();
    ui.panel.setAttribute("role", layout() === "dock" ? "complementary" : "dialog");
    ui.panel.dispatchEvent(new Event("sp-arrange"));
  }

  /** Do something that moves the text, and put `anchor` back where the reader's eye is. */
  function keepPlace(/** @type {Element | null} */ anchor, /** @type {() => void} */ change) {
    const before = anchor?.isConnected ? anchor.getBoundingClientRect().top : 0;
    change();
    if (!anchor?.isConnected) return;
    const { top, bottom } = anchor.getBoundingClientRect();
    const cover = html.dataset.sp === "sheet" ? innerHeight - ui.panel.offsetHeight : innerHeight;
    const moved = top - before + Math.max(0, bottom - (top - before) + 24 - cover);
    if (moved) scrollBy({ top: moved, behavior: "instant" });
  }

  /** @param {State} before @param {boolean} focus */
  function render(before, focus) {
    const { address, status } = current;
    if (!address) {
      if (!before.address) return;
      const inside = ui.panel.contains(document.activeElement) || document.activeElement === document.body;
      keepPlace(opener, () => {
        ui.panel.hidden = true;
        arrange();
      });
      if (inside && opener?.isConnected) opener.focus({ preventScroll: true });
      ui.live.textContent = parts.say("closed");
      for (const feature of features) feature.state?.(before, current);
      return trace();
    }
    if (!ui) build();
    if (!before.address) {
      ui.panel.hidden = false;
      keepPlace(opener, arrange);
    }
    const view = fill(address);
    if (status === "ready") {
      view.mark(address.start, address.end, before.visit !== current.visit || before.status !== status);
      ui.live.textContent = parts.say("opened", { path: address.path, range: parts.range(address) });
    }
    if (focus) view.root.focus({ preventScroll: true });
    for (const feature of features) feature.state?.(before, current);
    trace();
  }

  /**
   * Show where we are and, for a status, the body; what is shown already stays.
   * @param {Address} address
   */
  function fill(address) {
    const retry = () => dispatch({ type: "open", address }, { focus: true });
    const view =
      current.status === "ready" ? viewOf(address)
      : current.status === "loading" ? parts.loading(address)
      : parts.failed(address, retry);
    if (ui.body.firstChild !== view.root) ui.body.replaceChildren(view.root);
    ui.head.replaceChildren(...parts.head(address, files.get(S.key(address)), close));
    equip(address);
    ui.foot.replaceChildren(...parts.foot(address));
    ui.panel.setAttribute("aria-label", parts.label(address));
    ui.panel.setAttribute("aria-busy", String(current.status === "loading"));
    return view;
  }

  /** The buttons of the features. @param {Address} address */
  function equip(address) {
    const tools = features.flatMap((feature) => feature.tools?.(address, files.get(S.key(address))) ?? []);
    // Only if they differ: a button that is taken out loses the focus.
    if (tools.length !== ui.tools.childNodes.length || tools.some((tool, i) => tool !== ui.tools.childNodes[i])) {
      ui.tools.replaceChildren(...tools);
    }
  }

  /** Tie the text to the panel: links to what is open carry a mark. */
  function trace() {
    for (const link of document.querySelectorAll(".sp-link[aria-current]")) link.removeAttribute("aria-current");
    if (!current.address) return;
    const selector = `.sp-link[data-src="${CSS.escape(S.format(current.address))}"]`;
    for (const link of document.querySelectorAll(selector)) link.setAttribute("aria-current", "true");
    if (!opener?.isConnected) opener = document.querySelector(selector);
  }

  for (const name of ["pointerover", "focusin"]) {
    document.addEventListener(name, ({ target }) => {
      if (!late && target instanceof Element && target.closest("a[href]")) later();
    });
  }
  document.addEventListener("click", onClick);
  document.addEventListener("keydown", onKey);
  addEventListener("popstate", sync);

  Object.assign(SourcePanel, {
    /** Called by the data files. @param {string} key @param {Data} data */
    define(key, data) {
      files.set(key, data);
    },
    /** Called once by site.js, when all scripts are there. @param {SiteConfig} site */
    configure(site) {
      repos = Object.keys(site.repositories);
      parts = SourcePanel.parts(site);
      const api = {
        base,
        site,
        repos,
        say: parts.say,
        range: parts.range,
        panel: () => (ui ?? build(), ui),
        state: () => current,
        data: (/** @type {string} */ key) => files.get(key),
        view: () => (current.address ? views.get(S.key(current.address)) : undefined),
        dispatch,
        remember,
        need,
        later,
        load,
        close,
        announce: (/** @type {string} */ text) => void ((ui ?? build(), ui).live.textContent = text),
      };
      for (const make of SourcePanel.features ?? []) features.push(make(api));
      // Those that come later join what stands already.
      SourcePanel.features = /** @type {any} */ ({
        push(/** @type {(api: PanelApi) => Feature} */ make) {
          const feature = make(api);
          // Before the help sheet, whose button stays the last.
          features.splice(-1, 0, feature);
          feature.sync?.(new URLSearchParams(location.search));
          for (const [key, view] of views) feature.view?.(view, /** @type {Address} */ (S.parse(key, repos)), /** @type {Data} */ (files.get(key)));
          if (!current.address || !ui) return;
          equip(current.address);
          feature.state?.(S.initial, current);
        },
      });
      if (globalThis.document$) document$?.subscribe(sync);
      else if (document.body) sync();
      else addEventListener("load", sync, { once: true });
    },
    /** Open an address as written in `data-src`; `from` gets the focus back. @param {string} text @param {HTMLElement} [from] */
    open(text, from) {
      const address = S.parse(text, repos);
      if (address && from) opener = from;
      if (address) dispatch({ type: "open", address }, { history: "push", focus: true });
    },
    close,
    later,
  });
  // For other scripts and tests: what is open now.
  Object.defineProperty(SourcePanel, "current", { get: () => current });
})();
