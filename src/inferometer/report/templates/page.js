// The theme, and print. The page is complete without this script: charts are SVG, figures stand in tables.
(() => {
  "use strict";
  const root = document.documentElement;

  // Theme: ?theme= wins, then what the reader chose before, then the system.
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const nameButton = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  const remembered = () => { try { return localStorage.getItem("inferometer-theme"); } catch { return null; } };
  const wanted = new URLSearchParams(location.search).get("theme") || remembered();
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("inferometer-theme", root.dataset.theme); } catch { /* file:// may forbid it */ }
    nameButton();
  });
  system.addEventListener("change", nameButton);
  nameButton();

  // Print: light colours, everything unfolded.
  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: root.dataset.theme, folded: [...document.querySelectorAll("details:not([open])")] };
    root.dataset.theme = "light";
    for (const details of before.folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    if (!before) return;
    if (before.theme) root.dataset.theme = before.theme; else delete root.dataset.theme;
    for (const details of before.folded) details.open = false;
    before = null;
  });
})();
