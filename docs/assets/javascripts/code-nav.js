// The theme wraps the copy button of every code block in a <nav> without a name: as many landmarks as blocks, all alike.
document$?.subscribe(() => {
  for (const nav of document.querySelectorAll(".md-code__nav")) nav.setAttribute("role", "none");
});
