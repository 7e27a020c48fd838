/**
 * Rewrites what a reader asks into what the theme's search understands, on its way to the worker.
 *
 * - Signs that begin a word are syntax to the index: `--tensor-model-parallel-size` would mean "without these words",
 *   and find nothing. They are taken out.
 * - The theme cuts a run of Chinese into the words of its index, but never looks at the run's last character, so that
 *   梯度同步 asks for 梯度 alone, and it cannot find 量并 in 张量并行. The runs are cut here, by the same words.
 * - An identifier is indexed by its parts, and any of them would do: `setup_model_and_optimizer` finds every "and".
 *   Where the notes have it as written, all of its parts are asked for.
 */
(function () {
  "use strict";
  const SETUP = 0; // The theme's numbers for its kinds of messages.
  const QUERY = 2;
  const BORDER = "\u200b"; // Stands between the words of the indexed text.
  const TAIL = "々"; // A character that no word holds: with it, the theme sees the whole of the word before it.
  const LONGEST = 12;
  const prototype = window.Worker.prototype;
  const send = prototype.postMessage;

  /** @type {string[]} */
  let texts = [];
  /** @type {Set<string>} */
  let known = new Set();
  let everything = "";
  let separator = /\s+/;

  /** @param {{ title: string, text: string }[]} docs @param {string} border  Between the words of the index. */
  function learn(docs, border) {
    separator = new RegExp(border);
    texts = docs.flatMap(({ title, text }) => [title, text]);
    everything = texts.join("\n").toLowerCase();
    known = new Set(texts.flatMap((text) => text.match(/\p{sc=Han}+/gu) ?? []));
  }

  /** The words around each place where the run stands as written. @param {string} run */
  function around(run) {
    const place = new RegExp(`\\p{sc=Han}*${[...run].join(`${BORDER}?`)}\\p{sc=Han}*`, "gu");
    return texts.flatMap((text) => text.match(place) ?? []).flatMap((match) => match.split(BORDER));
  }

  /** The longest known words from left to right; what lies between stays as it is. @param {string} run */
  function cut(run) {
    const words = [""];
    for (let at = 0; at < run.length; ) {
      let end = Math.min(run.length, at + LONGEST);
      while (end > at && !known.has(run.slice(at, end))) end -= 1;
      if (end > at) words.push(run.slice(at, end), "");
      else words[words.length - 1] += run[at];
      at = Math.max(end, at + 1);
    }
    return words.filter(Boolean);
  }

  /** @param {string} run */
  function words(run) {
    const found = known.has(run) ? [run] : [...new Set(around(run))];
    const parts = found.length ? found : cut(run);
    // 重 alone would find 重叠 for 重计算: a single character says something only where nothing else does.
    const long = parts.filter((part) => part.length > 1);
    return (long.length ? long : parts).map((word) => (known.has(word) ? word + TAIL : word)).join(" ");
  }

  /** All parts of what stands in the notes as written; the last may be a beginning. @param {string} name */
  function parts(name) {
    const split = name.split(separator).filter(Boolean);
    const at = everything.indexOf(name.toLowerCase());
    if (split.length < 2 || at < 0) return name;
    const rest = everything.slice(at + name.length, at + name.length + 1);
    const whole = !/[a-z0-9]/.test(rest);
    return split.map((part, i) => (i < split.length - 1 || whole ? `+${part}` : part)).join(" ");
  }

  /** @param {string} text */
  function rewrite(text) {
    const plain = text.replace(/(^|[\s（(【[“"'])[-+~^*:：]+(?=\S)/gu, "$1");
    return plain.replace(/[A-Za-z_][\w./:-]*\w/g, parts).replace(/\p{sc=Han}+/gu, words);
  }

  /**
   * @this {Worker}
   * @param {any} message
   * @param {any[]} rest
   */
  prototype.postMessage = function (message, ...rest) {
    let sent = message;
    if (message?.type === SETUP && Array.isArray(message.data?.docs)) learn(message.data.docs, message.data.config.separator);
    if (message?.type === QUERY && typeof message.data === "string") sent = { ...message, data: rewrite(message.data) };
    send.call(this, sent, .../** @type {[any]} */ (rest));
  };
})();
