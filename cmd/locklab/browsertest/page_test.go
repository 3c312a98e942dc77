package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/cmd/locklab/internal/report"
	"github.com/jucgo/locks/cmd/locklab/internal/scenarios"
)

// shots is where the screenshots go, for people to look at.
const shots = "../../../artifacts/locklab"

// LOCKS_SHOTS is a pattern of the names of the screenshots that are kept. A screenshot of a long
// page takes seconds, so without the variable there are none.
func kept(name string) bool {
	pattern := os.Getenv("LOCKS_SHOTS")
	return pattern != "" && regexp.MustCompile(pattern).MatchString(name)
}

// keep writes a screenshot.
func keep(t *testing.T, folder, name string, png []byte) {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o666))
}

// browser finds a browser, or skips the test.
func browser(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no Chromium")
	}
	t.Skip("no Chromium on this machine")
	return ""
}

// page runs the lab, and returns the page and its path.
func page(t *testing.T) (address string, r *report.Report) {
	options := lab.Options{Quick: os.Getenv("LOCKLAB_FULL") == "", Seed: 1}
	r = report.New(scenarios.Course, options)
	for _, s := range scenarios.Course.All() {
		result := lab.Run(t.Context(), s, options)
		r.Add(result)
		var text strings.Builder
		require.NoError(t, report.Text(&text, result, lab.English, false))
		require.True(t, result.OK, text.String())
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "page.html"))
	require.NoError(t, err)
	require.NoError(t, r.HTML(file))
	require.NoError(t, file.Close())
	return (&url.URL{Scheme: "file", Path: file.Name()}).String(), r
}

// course has the texts that must be on a page.
type course struct {
	prefix          string // of the screenshots
	waiting, waits  string // a bar of somebody who waits, and what it tells
	point, measured string // a point of a chart, and what it tells
	lanes           string // a timeline, and who is in its second lane
	second          string
	picture         bool // of docs/packages.md
}

func TestThePageInABrowser(t *testing.T) {
	path := browser(t)
	address, r := page(t)
	inspect(t, path, address, r, course{
		waiting: "#race-t1 .waiting", waits: `^\w+ waits for lock: [\d.]+ [mµn]s, from `,
		point: "#fairness-c0 .point .hit", measured: `^\S+: [\d.]+ [mµn]?s for each acquisition, at \d+ goroutines$`,
		lanes: "#race-t1", second: "Bob", picture: true,
	})
}

// The lab of distributed locks is a command of its own, in a module that this module does not know.
func TestThePageOfDistributedLocksInABrowser(t *testing.T) {
	path := browser(t)
	dir := t.TempDir()
	file, data := filepath.Join(dir, "page.html"), filepath.Join(dir, "data.json")
	args := []string{"run", "./cmd/locklab/distributed", "-o", file, "-json", data}
	if os.Getenv("LOCKLAB_FULL") == "" {
		args = append(args, "-quick")
	}
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir = filepath.Join("..", "..", "..")
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(data)
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(text, &r))
	inspect(t, path, (&url.URL{Scheme: "file", Path: file}).String(), &r, course{
		prefix: "distributed-", waiting: "#watchdog-t0 .waiting", waits: `^\w+ waits for lock: [\d.]+ [mµn]?s, from `,
		point: "#wake-up-c0 .point .bar", measured: `^polling, while held: \d+ commands$`,
		lanes: "#watchdog-t0", second: "other",
	})
}

// started starts a browser that lives as long as the test. It returns the context of its page, and
// the complaints of the page: errors, output on the console, and requests for URLs that do not
// begin with own.
func started(t *testing.T, path, own string) (ctx context.Context, complaints func() []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("force-color-profile", "srgb"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)

	// The first run starts the browser, which lives as long as its context.
	require.NoError(t, chromedp.Run(ctx))

	var mu sync.Mutex
	var all []string
	complain := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, fmt.Sprintf(format, args...))
	}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain("exception: %s", e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			complain("console.%s", e.Type)
		case *cdplog.EventEntryAdded:
			complain("log: %s %s", e.Entry.Level, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, own) && !strings.HasPrefix(u, "data:") {
				complain("request for %s", u)
			}
		}
	})
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// inspect looks at a page.
func inspect(t *testing.T, path, address string, r *report.Report, c course) {
	ctx, complaints := started(t, path, "file:")
	do := func(t *testing.T, actions ...chromedp.Action) {
		t.Helper()
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		require.NoError(t, chromedp.Run(ctx, actions...))
	}
	ask := func(t *testing.T, js string, answer any) {
		t.Helper()
		do(t, chromedp.Evaluate(js, answer))
	}
	shot := func(t *testing.T, name string) {
		t.Helper()
		if !kept(c.prefix + name) {
			return
		}
		var png []byte
		// From the top, where the contents stand beside the page, and when the layout has settled.
		do(t, chromedp.Evaluate(`document.documentElement.style.scrollBehavior = "auto"; scrollTo(0, 0)`, nil),
			chromedp.Sleep(300*time.Millisecond),
			chromedp.FullScreenshot(&png, 100))
		keep(t, shots, c.prefix+name, png)
	}
	theme := func(name string) chromedp.Action {
		scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: name}
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme})
	}
	background := func(t *testing.T) (color string) {
		t.Helper()
		ask(t, `getComputedStyle(document.body).backgroundColor`, &color)
		return color
	}

	do(t, cdplog.Enable(), network.Enable(), theme("light"), chromedp.EmulateViewport(1440, 900),
		chromedp.Navigate(address), chromedp.WaitVisible("#content"))

	t.Run("every scenario has its pictures, and they are not empty", func(t *testing.T) {
		for _, s := range r.Scenarios {
			for i := range s.Timelines {
				assertDrawn(t, ask, fmt.Sprintf("#%s-t%d", s.Name, i), ".span .fill")
			}
			for i := range s.Charts {
				assertDrawn(t, ask, fmt.Sprintf("#%s-c%d", s.Name, i), ".point .dot, .point .bar")
			}
			var title, tableRows int
			ask(t, fmt.Sprintf(`document.querySelectorAll("#%s svg > title").length`, s.Name), &title)
			ask(t, fmt.Sprintf(`document.querySelectorAll("#%s details table tbody tr").length`, s.Name), &tableRows)
			assert.Equal(t, len(s.Timelines)+len(s.Charts), title, "%s: pictures with a title", s.Name)
			assert.Positive(t, tableRows, "%s: data", s.Name)
			var linked bool
			ask(t, fmt.Sprintf(`!!document.querySelector('.toc a[href="#%s"]')`, s.Name), &linked)
			assert.True(t, linked, s.Name)
		}
	})

	// hover moves the mouse over the first element of the selector, and returns the tip. It tries
	// again until the tip is as wanted: on a busy machine the element may have moved.
	hover := func(t *testing.T, selector, want string) (tip string) {
		t.Helper()
		for range 20 {
			var at struct{ X, Y float64 }
			ask(t, `(() => { const el = document.querySelector("`+selector+`"); el.scrollIntoView({block: "center", behavior: "instant"});
				const r = el.getBoundingClientRect(); return {X: r.left + r.width/2, Y: r.top + r.height/2}; })()`, &at)
			do(t, chromedp.MouseEvent("mouseMoved", 0, 0), chromedp.Sleep(100*time.Millisecond),
				chromedp.MouseEvent("mouseMoved", at.X, at.Y))
			ask(t, `document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent`, &tip)
			if regexp.MustCompile(want).MatchString(tip) {
				break
			}
		}
		return tip
	}

	var tip string
	t.Run("hovering tells who, what and how long", func(t *testing.T) {
		assert.Regexp(t, c.waits, hover(t, c.waiting+" .fill", c.waits))
		if kept(c.prefix + "hover") {
			var png []byte
			do(t, chromedp.CaptureScreenshot(&png))
			keep(t, shots, c.prefix+"hover", png)
		}
	})

	t.Run("in a chart too", func(t *testing.T) {
		assert.Regexp(t, c.measured, hover(t, c.point, c.measured))
	})

	t.Run("so does the keyboard", func(t *testing.T) {
		shown := func() (text string) {
			t.Helper()
			// The target of a scroll is there a moment later.
			do(t, chromedp.Sleep(300*time.Millisecond))
			ask(t, `document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent`, &text)
			return text
		}
		ask(t, `(() => { document.documentElement.style.scrollBehavior = "auto";
			document.querySelector("`+c.lanes+` [tabindex='0']").focus(); })()`, nil)
		tip = shown()
		assert.NotEmpty(t, tip)
		before := tip
		do(t, chromedp.KeyEvent(kb.ArrowRight))
		tip = shown()
		assert.NotEqual(t, before, tip)
		var stops int
		ask(t, `document.querySelectorAll("`+c.lanes+` [tabindex='0']").length`, &stops)
		assert.Equal(t, 1, stops, "a picture is one stop for the tab key")
		do(t, chromedp.KeyEvent(kb.ArrowDown))
		tip = shown()
		assert.True(t, strings.HasPrefix(tip, c.second), tip)
	})

	var light, dark string
	t.Run("it follows the system's theme, and the toggle", func(t *testing.T) {
		light = background(t)
		do(t, theme("dark"))
		dark = background(t)
		assert.NotEqual(t, light, dark)
		ask(t, `document.getElementById("theme").click()`, nil)
		assert.Equal(t, light, background(t))
		ask(t, `document.getElementById("theme").click()`, nil)
		assert.Equal(t, dark, background(t))
		ask(t, `document.getElementById("theme").click()`, nil)
		do(t, chromedp.Reload(), chromedp.WaitVisible("#content"))
		assert.Equal(t, light, background(t), "the choice is kept")
		ask(t, `localStorage.clear()`, nil)
	})

	t.Run("it speaks both languages, and remembers which", func(t *testing.T) {
		shown := func() (pages []string) {
			t.Helper()
			ask(t, `[...document.querySelectorAll(".page")].filter(el => el.getBoundingClientRect().height > 0).
				map(el => el.dataset.lang + " " + document.documentElement.lang + " " + document.title.includes("锁"))`, &pages)
			return pages
		}
		assert.Equal(t, []string{"en en false"}, shown())
		var at struct{ Before, After float64 }
		second := r.Scenarios[1].Name
		ask(t, `(() => { document.documentElement.style.scrollBehavior = "auto";
			document.getElementById("`+second+`").scrollIntoView();
			const before = document.getElementById("`+second+`").getBoundingClientRect().top;
			document.querySelector('.page[data-lang="en"] .lang').click();
			return {Before: before, After: document.getElementById("zh-`+second+`").getBoundingClientRect().top}; })()`, &at)
		assert.InDelta(t, at.Before, at.After, 2, "the reader stays at the chapter")
		chinese := []string{"zh zh-Hans true"}
		assert.Equal(t, chinese, shown())
		do(t, chromedp.Reload(), chromedp.WaitVisible("#zh-content"))
		assert.Equal(t, chinese, shown(), "the choice is kept")
		for range 100 { // the browser may return to the place before the reload after a link is followed
			ask(t, `(() => { document.documentElement.style.scrollBehavior = "auto"; location.hash = "";
				location.hash = "`+second+`"; })()`, nil)
			do(t, chromedp.Sleep(30*time.Millisecond))
			ask(t, `({Before: 0, After: document.getElementById("zh-`+second+`").getBoundingClientRect().top})`, &at)
			if math.Abs(at.After) < 100 {
				break
			}
		}
		assert.InDelta(t, 0, at.After, 100, "a link into the other language leads to the same chapter")
		ask(t, `document.querySelector('.page[data-lang="zh"] .lang').click()`, nil)
		assert.Equal(t, []string{"en en false"}, shown())
		ask(t, `localStorage.clear()`, nil)
		do(t, chromedp.Navigate(address), chromedp.WaitVisible("#content"))
	})

	t.Run("a phone has the words of all marks, and a tap tells the rest", func(t *testing.T) {
		do(t, chromedp.EmulateViewport(390, 740, chromedp.EmulateMobile, chromedp.EmulateTouch), chromedp.Reload(),
			chromedp.WaitVisible("#content"))
		var silent []string
		ask(t, `[...document.querySelectorAll('.page[data-lang="en"] figure')].filter(el => {
			const marks = [...el.querySelectorAll(".mark")].map(m => m.dataset.tip);
			const words = [...el.querySelectorAll(".marks li")].filter(li => li.getBoundingClientRect().height > 0).
				map(li => li.textContent);
			return JSON.stringify(marks) !== JSON.stringify(words);
		}).map(el => el.querySelector("figcaption").textContent)`, &silent)
		assert.Empty(t, silent, "pictures whose marks have no words")
		var at struct{ X, Y float64 }
		// The widest bar of a wait: a narrow one lies under its neighbour.
		ask(t, `(() => { const width = el => el.getBoundingClientRect().width;
			const el = [...document.querySelectorAll("`+c.waiting+` .fill")].sort((a, b) => width(b) - width(a))[0];
			el.scrollIntoView({block: "center", behavior: "instant"});
			const b = el.getBoundingClientRect(); return {X: b.left + b.width/2, Y: b.top + b.height/2}; })()`, &at)
		var tapped string
		for range 20 { // a tap on a page that scrolls is none
			do(t, chromedp.Sleep(100*time.Millisecond),
				chromedp.ActionFunc(func(ctx context.Context) error { return tap(ctx, at.X, at.Y) }),
				chromedp.Sleep(100*time.Millisecond))
			ask(t, `document.getElementById("tip").hidden ? "" : document.getElementById("tip").textContent`, &tapped)
			if tapped != "" {
				break
			}
		}
		assert.Regexp(t, c.waits, tapped)
		do(t, chromedp.EmulateViewport(1440, 900), chromedp.Reload(), chromedp.WaitVisible("#content"))
	})

	t.Run("a picture for docs/packages.md", func(t *testing.T) {
		if !c.picture || !kept("picture") {
			return
		}
		do(t, chromedp.EmulateViewport(1180, 900), theme("light"), chromedp.Reload(), chromedp.WaitVisible("#content"))
		var clip cdppage.Viewport
		// The legend stands far above the chapter, so the picture gets a copy of it.
		ask(t, `(() => {
			document.documentElement.style.scrollBehavior = "auto";
			const pictures = [...document.querySelectorAll("#fairness .picture")].slice(0, 4);
			const legend = document.querySelector('.page[data-lang="en"] .legend').cloneNode(true);
			legend.querySelector("p").remove();
			legend.style.marginTop = "2rem";
			pictures[0].before(legend);
			const all = [legend, ...pictures].map(el => el.getBoundingClientRect());
			const left = Math.min(...all.map(r => r.left)), right = Math.max(...all.map(r => r.right));
			const top = Math.min(...all.map(r => r.top)), bottom = Math.max(...all.map(r => r.bottom));
			return {x: left - 16 + scrollX, y: top - 16 + scrollY,
				width: right - left + 32, height: bottom - top + 32, scale: 1}; })()`, &clip)
		do(t, chromedp.ActionFunc(func(ctx context.Context) error {
			png, err := cdppage.CaptureScreenshot().WithClip(&clip).WithCaptureBeyondViewport(true).Do(ctx)
			if err != nil {
				return err
			}
			keep(t, shots, "picture", png)
			return nil
		}))
	})

	for _, look := range []struct {
		name   string
		width  int64
		height int64
		theme  string
		lang   string
	}{
		{"wide-light", 1440, 900, "light", "en"}, {"wide-dark", 1400, 900, "dark", "zh"},
		{"phone-light", 360, 740, "light", "en"}, {"phone-dark", 390, 740, "dark", "zh"},
	} {
		t.Run(look.name, func(t *testing.T) {
			ask(t, `localStorage.setItem("locklab-lang", "`+look.lang+`")`, nil)
			do(t, chromedp.EmulateViewport(look.width, look.height), theme(look.theme), chromedp.Reload(),
				chromedp.WaitVisible(`.page[data-lang="`+look.lang+`"] main`))
			want := light
			if look.theme == "dark" {
				want = dark
			}
			assert.Equal(t, want, background(t))
			var scrolls, inner int64
			ask(t, `document.documentElement.scrollWidth`, &scrolls)
			ask(t, `window.innerWidth`, &inner)
			assert.LessOrEqual(t, scrolls, inner, "no scrolling sideways")
			var wide []string
			ask(t, `[...document.querySelectorAll("main *")].
				filter(el => !el.closest(".scroll, pre, svg") && el.getBoundingClientRect().right > innerWidth + 1).
				map(el => el.tagName + "." + el.className)`, &wide)
			assert.Empty(t, wide, "nothing sticks out")
			ask(t, `document.querySelectorAll("details").forEach(d => { d.open = true })`, nil)
			ask(t, `document.documentElement.scrollWidth`, &scrolls)
			assert.LessOrEqual(t, scrolls, inner, "nor with all data open")
			ask(t, `[...document.querySelectorAll(".scroll")].filter(el => el.scrollWidth > el.clientWidth + 1).
				map(el => el.getAttribute("aria-label") + ": " + el.scrollWidth + " > " + el.clientWidth)`, &wide)
			assert.Empty(t, wide, "no table scrolls sideways")
			ask(t, `document.querySelectorAll("details").forEach(d => { d.open = false })`, nil)
			shot(t, look.name)
		})
	}

	t.Run("the browser has nothing to complain about", func(t *testing.T) {
		assert.Empty(t, complaints())
	})
}

// tap touches the page for a moment.
func tap(ctx context.Context, x, y float64) error {
	points := []*input.TouchPoint{{X: x, Y: y}}
	if err := input.DispatchTouchEvent(input.TouchStart, points).Do(ctx); err != nil {
		return err
	}
	return input.DispatchTouchEvent(input.TouchEnd, []*input.TouchPoint{}).Do(ctx)
}

func assertDrawn(t *testing.T, ask func(*testing.T, string, any), picture, part string) {
	t.Helper()
	var drawn struct{ Width, Height, Parts, Tips float64 }
	ask(t, fmt.Sprintf(`(() => { const el = document.querySelector(%q); if (!el) return {}; const r = el.getBoundingClientRect();
		const parts = [...el.querySelectorAll(%q)].filter(p => { const b = p.getBoundingClientRect(); return b.width > 0 && b.height > 0; });
		return {Width: r.width, Height: r.height, Parts: parts.length,
			Tips: el.querySelectorAll("[data-tip]").length}; })()`, picture, part), &drawn)
	assert.Greater(t, drawn.Width, 200.0, picture)
	assert.Greater(t, drawn.Height, 80.0, picture)
	assert.Positive(t, drawn.Parts, picture)
	assert.Positive(t, drawn.Tips, picture)
}
