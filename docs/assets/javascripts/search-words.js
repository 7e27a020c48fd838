/**
 * The words that a reader asked for, from the box to the page they lead to.
 *
 * - The theme searches when a key goes up: text that is pasted, dropped or spoken, and the end of an input method,
 *   would not search. And it would search for the letters of a word that is still being composed.
 * - The theme hands on to the page the parts of words that its index knew, or nothing. Here the page gets what was
 *   asked for, and marks it as written; where that is not on the page, its parts.
 */
(function () {
  "use strict";
  const FIELD = "[data-md-component=search-query]";
  const RESULT = "a.md-search-result__link:not([data-src])";
  const SYNTAX = /(^|\s)[-+~^*:：]+(?=\S)|["“”'（）()【】《》[\]{}<>，。、；？！*]/gu;

  /** @param {EventTarget | null} target @returns {target is HTMLInputElement} */
  const isField = (target) => target instanceof HTMLInputElement && target.matches(FIELD);
  const field = () => /** @type {HTMLInputElement | null} */ (document.querySelector(FIELD));

  for (const name of ["input", "compositionend"]) {
    document.addEventListener(name, (event) => {
      const composing = /** @type {InputEvent} */ (event).isComposing && name === "input";
      if (isField(event.target) && !composing) event.target.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
    });
  }
  addEventListener("keyup", (event) => {
    if (isField(event.target) && event.isComposing) event.stopImmediatePropagation();
  }, true);

  /** What is asked for, without what is only syntax. */
  const asked = () => (field()?.value ?? "").replace(SYNTAX, " $1").replace(/\s+/g, " ").trim();

  /** @param {ParentNode} within */
  function hand(within) {
    const words = asked();
    for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (within.querySelectorAll(RESULT))) {
      const to = new URL(link.href);
      if (to.searchParams.get("h") === words) continue;
      to.searchParams.set("h", words);
      link.href = to.href;
    }
  }

  /** The pieces of a word that may stand on a page alone. @param {string} word @param {string} text */
  function pieces(word, text) {
    const found = word.split(/[^\p{L}\p{N}]+|(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{sc=Han})(?!\p{sc=Han})|(?<!\p{sc=Han})(?=\p{sc=Han})/u);
    return found.flatMap((piece) => {
      if (!/\p{sc=Han}/u.test(piece)) return piece.length > 2 ? [piece] : [];
      const parts = [];
      for (let at = 0; at < piece.length; ) {
        let end = piece.length;
        while (end - at > 1 && !text.includes(piece.slice(at, end))) end -= 1;
        if (end - at > 1) parts.push(piece.slice(at, end));
        at = end - at > 1 ? end : at + 1;
      }
      return parts;
    });
  }

  /** Where a word begins in a text: at the beginning of a word of the text, or of a part of it. @param {string} text @param {string} word */
  function places(text, word) {
    const found = [];
    for (const { index } of text.matchAll(new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu"))) {
      const [before, first] = [text[index - 1] ?? "", text[index]];
      if (!/^\w/.test(word) || !/[A-Za-z0-9]/.test(before) || (/[a-z0-9]/.test(before) && /[A-Z]/.test(first))) found.push([index, index + word.length]);
    }
    return found;
  }

  function mark() {
    const words = new URLSearchParams(location.search).get("h")?.trim();
    const article = document.querySelector("article.md-content__inner");
    if (!words || !article || article.querySelector("mark.search-word")) return;
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    /** @type {Text[]} */
    const texts = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (!node.parentElement?.closest("script, style, noscript, svg")) texts.push(/** @type {Text} */ (node));
    }
    const stands = (/** @type {string} */ word) => texts.some(({ data }) => places(data, word).length);
    const all = texts.map(({ data }) => data).join("\n");
    const wanted = words.split(" ").flatMap((word) => (stands(word) ? [word] : pieces(word, all)));
    for (const node of texts) {
      const found = wanted.flatMap((word) => places(node.data, word)).sort(([a], [b]) => a - b);
      const parts = [];
      let done = 0;
      for (const [start, end] of found) {
        if (end <= done) continue;
        const one = document.createElement("mark");
        one.className = "search-word";
        one.append(node.data.slice(Math.max(start, done), end));
        parts.push(node.data.slice(done, Math.max(start, done)), one);
        done = end;
      }
      if (parts.length) node.replaceWith(...parts, node.data.slice(done));
    }
  }

  function start() {
    const list = document.querySelector(".md-search-result__list");
    if (list) new MutationObserver(() => hand(list)).observe(list, { childList: true, subtree: true });
    const pages = globalThis.document$;
    if (pages) pages.subscribe(mark);
    else mark();
  }
  document.addEventListener("DOMContentLoaded", start);
})();
