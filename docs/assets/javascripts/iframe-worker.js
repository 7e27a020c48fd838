/**
 * A Worker for pages opened from disk, where browsers refuse real ones (the origin of file:// is opaque).
 *
 * The worker's script runs in a hidden frame of the same document: messages and importScripts behave as in a
 * worker, only on the page's own thread. Over http this file does nothing. It keeps to what the search of the theme
 * needs: no transfer lists, no module workers, no errors across the border.
 */
(function () {
  "use strict";
  if (location.protocol !== "file:") return;

  class FileWorker extends EventTarget {
    /** @param {string | URL} url */
    constructor(url) {
      super();
      const address = new URL(url, document.baseURI).href;
      /** @type {((event: MessageEvent) => void) | null} */
      this.onmessage = null;
      /** @type {unknown[]} Messages that came before the script was there. */
      this.waiting = [];
      this.ready = false;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "";
      this.frame.srcdoc = "<!doctype html><title></title>";
      this.frame.addEventListener("load", () => this.start(address), { once: true });
      (document.body || document.documentElement).append(this.frame);
    }

    /** @param {string} address */
    start(address) {
      const inside = /** @type {Window & typeof globalThis & Record<string, unknown>} */ (this.frame.contentWindow);
      inside.importScripts = async (/** @type {string[]} */ ...paths) => {
        for (const path of paths) await load(inside.document, new URL(path, address).href);
      };
      Object.defineProperty(inside, "postMessage", {
        value: (/** @type {unknown} */ data) => this.receive(data),
      });
      load(inside.document, address).then(
        () => {
          this.ready = true;
          for (const data of this.waiting.splice(0)) this.postMessage(data);
        },
        () => this.dispatchEvent(new Event("error")),
      );
    }

    /** @param {unknown} data */
    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    /** @param {unknown} data */
    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      const inside = /** @type {Window & typeof globalThis} */ (this.frame.contentWindow);
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  }

  /**
   * @param {Document} document
   * @param {string} address
   */
  function load(document, address) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => resolve(undefined);
      script.onerror = () => reject(new Error(`cannot load ${address}`));
      document.head.append(script);
    });
  }

  Object.defineProperty(window, "Worker", { value: FileWorker, writable: true, configurable: true });
})();
