/**
 * A panel as one writes it first: every line of the file becomes a row of a table. It loads the same data, with the
 * same colours, as the source panel does; what differs is only what it puts on the page.
 */
(() => {
  const files = new Map();
  const define = SourcePanel.define;
  SourcePanel.define = (key, data) => (files.set(key, data), define(key, data));
  const panel = document.createElement("aside");
  panel.style.cssText = "position:fixed;inset:0 0 0 50%;overflow:auto;background:Canvas;z-index:9;font:13px/20px monospace";

  function show(key, line) {
    const lines = files.get(key).sections.flatMap((section) => section.split("\n"));
    const rows = lines.map((html, i) => `<tr id="row-${i + 1}"><td>${i + 1}</td><td><pre style="margin:0">${html}\n</pre></td></tr>`);
    panel.innerHTML = `<table>${rows.join("")}</table>`;
    document.body.append(panel);
    const row = document.getElementById(`row-${line}`);
    row.style.background = "Mark";
    row.scrollIntoView({ block: "center" });
  }

  globalThis.naive = {
    open(key, path, line) {
      if (files.has(key)) return show(key, line);
      const script = document.createElement("script");
      script.src = path;
      script.onload = () => show(key, line);
      document.head.append(script);
    },
    close: () => panel.remove(),
  };
})();
