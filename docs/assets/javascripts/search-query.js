/**
 * What readers paste into the search is not the query language of its index: `--tensor-model-parallel-size` would
 * mean "without these words", and find nothing. So signs that begin a word are taken out before the worker sees them.
 */
(function () {
  "use strict";
  const QUERY = 2; // The theme's number for this kind of message.
  const prototype = window.Worker.prototype;
  const send = prototype.postMessage;

  /** @param {string} text */
  function plain(text) {
    return text.replace(/(^|[\s（(【\[“"'])[-+~^*:：]+(?=\S)/gu, "$1");
  }

  /**
   * @this {Worker}
   * @param {any} message
   * @param {any[]} rest
   */
  prototype.postMessage = function (message, ...rest) {
    const isQuery = message && message.type === QUERY && typeof message.data === "string";
    send.call(this, isQuery ? { ...message, data: plain(message.data) } : message, .../** @type {[any]} */ (rest));
  };
})();
