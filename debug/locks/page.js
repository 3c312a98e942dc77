"use strict";
(() => {
  const content = document.getElementById("content");
  const status = document.getElementById("status");
  const pause = document.getElementById("pause");
  let every = Number(content.dataset.refresh) * 1000;
  if (!every) return;
  let paused = false;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
  });
  const keys = (root) => [...root.querySelectorAll("details")];
  const name = (d) => d.dataset.key;
  async function refresh() {
    const selected = String(getSelection()) !== "";
    if (paused || document.hidden || selected) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = next.getElementById("content");
      if (!fresh) throw new Error("no content");
      const open = new Set(keys(content).filter((d) => d.open).map(name));
      for (const d of keys(fresh)) d.open = open.has(name(d));
      every = Number(fresh.dataset.refresh) * 1000; // longer if the answers stop the program for long
      content.replaceChildren(...fresh.childNodes);
      status.textContent = next.getElementById("status").textContent;
      document.title = next.title;
    } catch {
      document.getElementById("stale").hidden = false;
    }
  }
  (async () => {
    for (;;) {
      await new Promise((done) => setTimeout(done, every));
      await refresh();
    }
  })();
})();
