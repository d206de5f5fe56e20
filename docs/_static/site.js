// Lets long names break after "_", and in tables and titles also before a capital or a dot.
window.addEventListener("DOMContentLoaded", () => {
  const named = "h1, th, code, dt.sig, .bd-sidebar a, .prev-next-title";
  for (const name of document.querySelectorAll(named)) {
    if (name.closest("pre")) continue;
    const breaks = name.closest("table, h1, dt, nav, .prev-next-title")
      ? /(?<=\w_)(?=\w)|(?<=[a-z])(?=[A-Z]|\.[a-z])/
      : /(?<=\w_)(?=\w)/;
    const walker = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    for (const text of texts) {
      const parts = text.data.split(breaks);
      text.replaceWith(...parts.flatMap((part) => [document.createElement("wbr"), part]).slice(1));
    }
  }
});

// Marks the tables that are wider than their page.
const markWideTables = () => {
  for (const box of document.querySelectorAll(".pst-scrollable-table-container")) {
    box.classList.toggle("wide", box.scrollWidth > box.clientWidth);
  }
};
window.addEventListener("load", markWideTables);
window.addEventListener("resize", markWideTables);

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
