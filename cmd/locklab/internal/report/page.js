(function () {
	"use strict";
	var root = document.documentElement;
	var kept = null;
	try { kept = localStorage.getItem("locklab-theme"); } catch (e) { /* not allowed: do without */ }
	if (kept === "light" || kept === "dark") { root.dataset.theme = kept; }
	document.querySelectorAll(".theme").forEach(function (button) {
		button.addEventListener("click", function () {
			var dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
			root.dataset.theme = dark ? "light" : "dark";
			try { localStorage.setItem("locklab-theme", root.dataset.theme); } catch (e) { /* see above */ }
		});
	});

	// Each language is a part of the page of its own, and its ids have a prefix.
	function shown(lang) { return document.querySelector('.page[data-lang="' + lang + '"]'); }
	function twin(id, lang) {
		var plain = id.replace(/^zh-/, "");
		return document.getElementById(lang === "zh" ? "zh-" + plain : plain);
	}
	function speak(lang) {
		root.dataset.lang = lang;
		root.lang = shown(lang).lang;
		document.title = shown(lang).dataset.title;
	}
	var tongue = null;
	try { tongue = localStorage.getItem("locklab-lang"); } catch (e) { /* see above */ }
	if (tongue === "en" || tongue === "zh") { speak(tongue); }
	function follow() {
		// A link into the other language leads to the same place in the one that is shown.
		var id = decodeURIComponent(location.hash.slice(1));
		var at = id && twin(id, root.dataset.lang);
		if (at && at.id !== id) { at.scrollIntoView({ behavior: "instant" }); }
	}
	follow();
	addEventListener("hashchange", follow);
	document.querySelectorAll(".lang").forEach(function (button) {
		button.addEventListener("click", function () {
			// The reader stays at the same chapter.
			var here = Array.from(shown(root.dataset.lang).querySelectorAll("article")).find(function (el) {
				var r = el.getBoundingClientRect();
				return r.top <= root.clientHeight / 2 && r.bottom > root.clientHeight / 2;
			});
			speak(button.dataset.to);
			try { localStorage.setItem("locklab-lang", root.dataset.lang); } catch (e) { /* see above */ }
			if (here) { twin(here.id, root.dataset.lang).scrollIntoView({ behavior: "instant" }); }
			var back = shown(root.dataset.lang).querySelector(".lang");
			back.focus({ preventScroll: true });
		});
	});

	var tip = document.getElementById("tip");
	function show(target) {
		tip.textContent = target.dataset.tip;
		tip.hidden = false;
		var at = (target.querySelector("rect, circle, path") || target).getBoundingClientRect();
		var box = tip.getBoundingClientRect();
		var x = at.left + Math.min(at.width, 120) / 2 - box.width / 2;
		x = Math.max(8, Math.min(x, root.clientWidth - box.width - 8));
		var y = at.top - box.height - 8;
		if (8 > y) { y = at.bottom + 10; }
		tip.style.left = x + "px";
		tip.style.top = y + "px";
	}
	function hide() { tip.hidden = true; }
	function of(event) { return event.target.closest ? event.target.closest("[data-tip]") : null; }
	// What has the focus, unless a pointer gave it.
	var pointed = false, last = "";
	document.addEventListener("pointerdown", function () { pointed = true; });
	document.addEventListener("keydown", function () { pointed = false; });
	function focused() { var f = document.activeElement; return !pointed && f && f.dataset && f.dataset.tip ? f : null; }
	document.addEventListener("pointerover", function (e) {
		// To move by keyboard scrolls, which puts other things under a pointer that rests: then the tip stays where it is.
		var rests = last === e.clientX + "," + e.clientY;
		last = e.clientX + "," + e.clientY;
		if (rests && focused()) { return; }
		var t = of(e);
		if (t) { show(t); } else { hide(); }
	});
	document.addEventListener("pointermove", function (e) { last = e.clientX + "," + e.clientY; });
	document.addEventListener("focusin", function (e) { var t = of(e); if (t) { show(t); } else { hide(); } });
	document.addEventListener("focusout", hide);
	document.addEventListener("scroll", function () {
		var f = focused(), at = f && f.getBoundingClientRect();
		if (at && at.bottom >= 0 && root.clientHeight >= at.top) { show(f); } else { hide(); }
	}, { passive: true });

	// One tab stop for each picture: left and right move along a lane, up and down between lanes.
	document.addEventListener("keydown", function (e) {
		var t = of(e);
		if (e.key === "Escape") { hide(); }
		if (!t) { return; }
		var all = Array.from(t.closest("svg.timeline, svg.chart").querySelectorAll("[data-tip]"));
		function middle(el) { var r = (el.querySelector("rect, circle, path") || el).getBoundingClientRect(); return r.left + r.width / 2; }
		var lane = Number(t.dataset.lane), next = null;
		function along(step) {
			var row = all.filter(function (el) { return Number(el.dataset.lane) === lane; });
			row.sort(function (a, b) { return middle(a) - middle(b); });
			return row[row.indexOf(t) + step];
		}
		function across(step) {
			var row = all.filter(function (el) { return Number(el.dataset.lane) === lane + step; });
			row.sort(function (a, b) { return Math.abs(middle(a) - middle(t)) - Math.abs(middle(b) - middle(t)); });
			return row[0];
		}
		if (e.key === "ArrowRight") { next = along(1); }
		else if (e.key === "ArrowLeft") { next = along(-1); }
		else if (e.key === "ArrowDown") { next = across(1) || along(1); }
		else if (e.key === "ArrowUp") { next = across(-1) || along(-1); }
		else { return; }
		e.preventDefault();
		if (!next) { return; }
		t.setAttribute("tabindex", "-1");
		next.setAttribute("tabindex", "0");
		next.focus({ preventScroll: false });
	});

	var links = new Map();
	document.querySelectorAll(".toc a").forEach(function (a) { links.set(a.getAttribute("href").slice(1), a); });
	if ("IntersectionObserver" in window) {
		var seen = new IntersectionObserver(function (entries) {
			entries.forEach(function (entry) {
				if (!entry.isIntersecting) { return; }
				links.forEach(function (a) { a.removeAttribute("aria-current"); });
				var a = links.get(entry.target.id);
				if (a) { a.setAttribute("aria-current", "true"); }
			});
		}, { rootMargin: "-20% 0px -70% 0px" });
		document.querySelectorAll("article").forEach(function (el) { seen.observe(el); });
	}
})();
