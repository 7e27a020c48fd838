// @ts-check
/**
 * What fills the panel: the lines of a file, the entries of a folder, or a sentence.
 *
 * A file is sections of 50 lines that the browser lays out only near the view (`content-visibility`). They
 * start as one text node each, so even 100,000 lines stand at once, and the browser's own find, selection and
 * screen readers have the whole text. The sections in view get their lines and colours at once, the others
 * when they come near or when the browser is idle.
 *
 * @typedef {object} View
 * @property {HTMLElement} root  The element to show; it takes the focus.
 * @property {(start: number, end: number, scroll: boolean) => void} mark  Mark these lines (none for 0).
 * @property {() => void} dispose
 * @property {((seen: (lines: HTMLElement[], first: number) => void) => void)=} dressed
 *   Be told of each stretch of lines that gets its elements, those that have them already first.
 * @property {((line: number) => void)=} show  Bring a line into view.
 * @property {((below?: number) => number)=} top  Number of the first line in view, or of the one so many pixels below.
 * @property {((below?: number) => number)=} here  The first marked line while it is in view; else as `top`.
 * @property {((change: () => void) => void)=} hold  Do what moves lines, and put the first line in view back in its place.
 * @property {((line: number) => HTMLElement | undefined)=} line  The element of a line; made if need be.
 */
(() => {
  /** Lines of a section; render.py cuts so. Few, as a browser lays out whole sections. */
  const SECTION = 50;
  /** Above this many lines, sections far from the view stay plain: their elements would fill the memory. */
  const EAGER = 20_000;

  /**
   * Make an element; a property that is no attribute of it (`onclick`, `textContent`) is set as such.
   * @param {string} tag
   * @param {Record<string, any>} [properties]
   * @param {...(Node | string)} children
   * @returns {any}
   */
  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made && typeof value !== "string") /** @type {any} */ (made)[name] = value;
      else if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  /** A picture of lines in a square of 16. @type {ViewModule["icon"]} */
  function icon(path) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.setAttribute("aria-hidden", "true");
    line.setAttribute("d", path);
    svg.append(line);
    return svg;
  }

  /** The text of a line's or section's HTML. @param {string} html */
  function plain(html) {
    return html.replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  }

  /** @type {ViewModule["code"]} */
  function code(data, { label, notice, href }) {
    const sections = data.sections.map((html, i) => {
      /** @type {HTMLElement} */
      const section = element("section", {}, `${plain(html)}\n`);
      const count = Math.min(SECTION, data.lines - i * SECTION);
      section.style.containIntrinsicBlockSize = `auto calc(${count} * var(--sp-line))`;
      return section;
    });
    const lines = element("div", { class: "sp-lines", translate: "no" }, ...sections);
    lines.style.setProperty("--sp-digits", String(String(data.lines).length));
    lines.style.setProperty("--sp-columns", String(data.columns));
    /** @type {HTMLElement} */
    const root = element("div", { class: "sp-code", role: "region", tabindex: "0", "aria-label": label }, lines);
    if (notice) root.prepend(element("p", { class: "sp-notice" }, notice));

    let [from, to, ready, frame, idle] = [0, 0, 0, 0, 0];
    /** @type {((lines: HTMLElement[], first: number) => void)[]} */
    const watchers = [];
    const near = new IntersectionObserver(
      (entries) => entries.forEach((entry) => entry.isIntersecting && dress(sections.indexOf(/** @type {HTMLElement} */ (entry.target)))),
      { root: root, rootMargin: "100% 0px" },
    );
    for (const section of sections) near.observe(section);

    /** Give a section its lines and colours. @param {number} i */
    function dress(i) {
      const section = sections[i];
      if (!section || section.className) return;
      near.unobserve(section);
      section.className = "sp-ready";
      // Safe: render.py escaped all source text; numbers and the encoded address are ours.
      section.innerHTML = data.sections[i].split("\n").map((html, j) => {
        const n = i * SECTION + j + 1;
        const number = `<a class="sp-n" tabindex="-1" aria-label="${n}" data-n="${n}" href="${href(n)}"></a>`;
        return `<div class="sp-l">${number}${html}\n</div>`;
      }).join("");
      ready += 1;
      paint(i, from, to, true);
      for (const seen of watchers) show(i, seen);
    }

    /** @param {number} i @param {(lines: HTMLElement[], first: number) => void} seen */
    function show(i, seen) {
      seen(/** @type {HTMLElement[]} */ ([...sections[i].children]), i * SECTION + 1);
    }

    /** Set or take the mark of the lines of one section. */
    function paint(/** @type {number} */ i, /** @type {number} */ a, /** @type {number} */ b, /** @type {boolean} */ on) {
      const first = i * SECTION + 1;
      if (!a || !sections[i]?.className) return;
      for (let n = Math.max(a, first); n <= Math.min(b, first + SECTION - 1); n++) {
        sections[i].children[n - first]?.classList.toggle("sp-on", on);
      }
    }

    /** All sections that hold lines of a range. */
    function paintAll(/** @type {number} */ a, /** @type {number} */ b, /** @type {boolean} */ on) {
      for (let i = Math.floor((a - 1) / SECTION); i <= (b - 1) / SECTION; i++) paint(i, a, b, on);
    }

    /** Bring a range into view: in the upper third, all of it where it fits. */
    function place(a = from, b = to) {
      const i = Math.floor((a - 1) / SECTION);
      const first = sections[i]?.children[a - 1 - i * SECTION];
      if (!first) return;
      const height = first.getBoundingClientRect().height;
      const room = root.clientHeight - height * (b - a + 1);
      const offset = first.getBoundingClientRect().top - root.getBoundingClientRect().top - root.clientTop;
      root.scrollTop += offset - Math.max(2 * height, room / 3);
    }

    /** Heights of sections that were never laid out are estimates until the first frame: look once more. */
    function settle(/** @type {number} */ a, /** @type {number} */ b) {
      place(a, b);
      const at = root.scrollTop;
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        frame = requestAnimationFrame(() => root.scrollTop === at && place(a, b));
      });
    }

    /** @param {number} [below] */
    function top(below = 0) {
      const { left, top } = root.getBoundingClientRect();
      // At the very top there is padding above the first line.
      for (const y of [top + below + 1, top + below + 12]) {
        const section = document.elementsFromPoint(left + 8, y).find((one) => one.matches(".sp-lines section"));
        const i = sections.indexOf(/** @type {HTMLElement} */ (section));
        if (!section || i < 0) continue;
        const first = i * SECTION + 1;
        if (section.className) return first + Math.max(0, [...section.children].findIndex((line) => line.getBoundingClientRect().bottom > y));
        // Its lines have no elements yet; they are all there and of one height.
        return first + Math.floor((y - section.getBoundingClientRect().top) / section.clientHeight * Math.min(SECTION, data.lines - first + 1));
      }
      return 1;
    }

    /** @param {() => void} change */
    function hold(change) {
      let n = top();
      const offset = () => (lineOf(n)?.getBoundingClientRect().top ?? 0) - root.getBoundingClientRect().top;
      const before = offset();
      change();
      while (n > 1 && lineOf(n)?.hidden) n -= 1;
      const back = () => void (root.scrollTop += offset() - before);
      back();
      requestAnimationFrame(() => requestAnimationFrame(back));
    }

    /** @param {number} n */
    function lineOf(n) {
      const i = Math.floor((n - 1) / SECTION);
      dress(i);
      return /** @type {HTMLElement | undefined} */ (sections[i]?.children[(n - 1) % SECTION]);
    }

    /** Deep in a class the indentation fills a narrow panel: start where the marked lines start, if they do not fit. */
    function indent() {
      const marked = [...root.querySelectorAll(".sp-on")].map((line) => (line.textContent ?? "").trimEnd()).filter(Boolean);
      const number = /** @type {HTMLElement | null} */ (root.querySelector(".sp-n"));
      if (!number) return;
      const column = number.offsetWidth / (String(data.lines).length + 4);
      const room = (root.clientWidth - number.offsetWidth) / column;
      const least = Math.min(...marked.map((text) => text.search(/\S/)));
      const most = Math.max(...marked.map((text) => text.length));
      root.scrollLeft = most > room && least > 12 && least < Infinity ? Math.max(0, Math.min(least - 2, most - room + 1)) * column : 0;
    }

    /** Dress what is left, a little at a time, never under a selection. @param {{ timeRemaining(): number }} deadline */
    function rest(deadline) {
      const selection = getSelection();
      // The sections that come into view are dressed all the same; the others can wait for good.
      if (selection && !selection.isCollapsed && root.contains(selection.anchorNode)) return;
      for (let i = 0; i < sections.length && deadline.timeRemaining() > 6; i++) dress(i);
      idle = ready < sections.length ? later(rest) : 0;
    }

    if (data.lines <= EAGER) idle = later(rest);

    return {
      root,
      mark(start, end, scroll) {
        paintAll(from, to, false);
        [from, to] = [Math.min(start, data.lines), Math.min(end, data.lines)];
        const i = Math.floor((from - 1) / SECTION);
        if (from) [i, i + 1, i - 1].forEach(dress);
        paintAll(from, to, true);
        if (!scroll) return;
        if (!from) root.scrollTop = 0;
        settle(from, to);
        indent();
      },
      show(n) {
        const i = Math.floor((n - 1) / SECTION);
        [i, i + 1, i - 1].forEach(dress);
        settle(n, n);
      },
      dressed(seen) {
        watchers.push(seen);
        sections.forEach((section, i) => section.className && show(i, seen));
      },
      top,
      here(below) {
        const [line, frame] = [root.querySelector(".sp-on"), root].map((one) => one?.getBoundingClientRect());
        return line && frame && line.bottom > frame.top && line.top < frame.bottom ? from : top(below);
      },
      hold,
      line: lineOf,
      dispose() {
        near.disconnect();
        cancelAnimationFrame(frame);
        cancel(idle);
      },
    };
  }

  /** Safari has no requestIdleCallback. */
  const [later, cancel] = "requestIdleCallback" in globalThis
    ? [(/** @type {IdleRequestCallback} */ callback) => requestIdleCallback(callback), cancelIdleCallback]
    : [(/** @type {any} */ callback) => setTimeout(callback, 50, { timeRemaining: () => 7 }), clearTimeout];

  /** @param {Entry[]} entries */
  function links(entries) {
    const items = entries.map(({ text, href, src, folder, title }) =>
      element("li", {}, element("a", { class: folder ? "sp-folder" : null, href, "data-src": src, title }, text)));
    return element("ul", { class: "sp-links" }, ...items);
  }

  /**
   * The entries of a folder.
   * @type {ViewModule["list"]}
   */
  function list(entries, { label, notice }) {
    const head = notice ? [element("p", { class: "sp-notice" }, notice)] : [];
    return still(element("div", {}, ...head, links(entries)), label);
  }

  /**
   * A sentence, what can be done about it, and the places it is about.
   * @type {ViewModule["message"]}
   */
  function message(text, actions, { className = "", entries = [] } = {}) {
    const root = element("div", { class: `sp-message ${className}` }, element("p", {}, text));
    if (actions.length) root.append(element("p", {}, ...actions));
    if (entries.length) root.append(links(entries));
    return still(root, text);
  }

  /** @param {HTMLElement} root @param {string} label @returns {View} */
  function still(root, label) {
    for (const [name, value] of [["role", "region"], ["tabindex", "0"], ["aria-label", label]]) root.setAttribute(name, value);
    return { root, mark() {}, dispose() {} };
  }

  Object.assign(globalThis.SourcePanel, { view: { SECTION, element, icon, code, list, message } });
})();
