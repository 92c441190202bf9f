"use strict";
(function () {
  const root = document.documentElement;
  const store = {
    get() { try { return localStorage.getItem("oneofmany-theme"); } catch (error) { return null; } },
    set(value) { try { localStorage.setItem("oneofmany-theme", value); } catch (error) { /* a page without storage */ } },
  };
  const kept = store.get();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  document.getElementById("theme").addEventListener("click", function () {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set(root.dataset.theme);
  });
  function unfold() {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();
})();
