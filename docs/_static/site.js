// Marks the formulas within a text that are wider than it.
window.addEventListener("load", () =>
  window.MathJax?.startup?.promise.then(() => {
    for (const formula of document.querySelectorAll("mjx-container:not([display])")) {
      const text = formula.closest("p, li, dd, td") ?? document.body;
      const isWide = formula.getBoundingClientRect().right > text.getBoundingClientRect().right + 1;
      formula.classList.toggle("wide", isWide);
    }
  })
);
