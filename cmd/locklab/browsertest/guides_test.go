package browsertest

import (
	"bytes"
	_ "embed"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	markup "github.com/yuin/goldmark/renderer/html"
)

// repository is the folder of all pages.
const repository = "../../.."

//go:embed guides.css
var guidesCSS string

// markdown renders pages as GitHub does.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()), goldmark.WithRendererOptions(markup.WithUnsafe()))

// anchors gives headings the anchors that GitHub gives them.
type anchors map[string]int

// Generate returns the anchor of a heading: small letters, and hyphens for spaces.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	var b strings.Builder
	for _, r := range strings.ToLower(string(heading)) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	id := b.String()
	a[id]++
	if n := a[id]; n > 1 {
		id = fmt.Sprintf("%s-%d", id, n-1)
	}
	return []byte(id)
}

// Put notes an anchor that the text itself sets.
func (a anchors) Put(id []byte) { a[string(id)]++ }

// guides returns the names of all Markdown pages of the repository, with slashes.
func guides(t *testing.T) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(repository, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && slices.Contains([]string{".git", "artifacts", "target", "testdata"}, e.Name()):
			return fs.SkipDir
		case filepath.Ext(file) == ".md":
			name, err := filepath.Rel(repository, file)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	}))
	require.Greater(t, len(names), 100)
	return names
}

// badge stands for the badges of a page, which are pictures of another server.
const badge = `<svg xmlns="http://www.w3.org/2000/svg" width="110" height="20"><rect width="110" height="20" fill="#08c"/></svg>`

var badges = regexp.MustCompile(`src="https://img\.shields\.io/[^"]*"`)

// site serves the repository. A Markdown file is a page as on GitHub, a folder lists its files.
func site(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	file := filepath.Join(repository, filepath.FromSlash(name))
	info, err := os.Stat(file)
	switch {
	case name == "badge.svg":
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, badge)
		return
	case err != nil:
		http.NotFound(w, r)
		return
	case info.IsDir():
		_, _ = io.WriteString(w, "a folder")
		return
	case path.Ext(name) != ".md":
		http.ServeFile(w, r, file)
		return
	}
	source, err := os.ReadFile(file)
	var body bytes.Buffer
	if err == nil {
		err = markdown.Convert(source, &body, parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	lang := "en"
	if strings.HasPrefix(name, "docs/zh/") || strings.HasSuffix(name, ".zh-CN.md") {
		lang = "zh-Hans"
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!DOCTYPE html><html lang="%s"><head><meta charset="utf-8"/><link rel="icon" href="data:,"/>`+
		`<meta name="viewport" content="width=device-width, initial-scale=1"/><title>%s</title><style>%s</style></head>`+
		`<body><main>%s</main></body></html>`,
		lang, html.EscapeString(name), guidesCSS, badges.ReplaceAllString(body.String(), `src="/badge.svg"`))
}

// A page that breaks each rule, in this order: a wide element, a blank picture, a table that
// scrolls, a column of one word a line.
const broken = `<main><div style="width: 1500px">wide</div><img src="/nothing.png"/>` +
	`<table style="display: block; overflow: auto; width: 100px"><tr><td><div style="width: 200px">x</div></td></tr></table>` +
	`<table><tr><td style="max-width: 60px">%s</td></tr></table></main>`

func TestABrokenPageIsFound(t *testing.T) {
	file := browser(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, broken, strings.Repeat("one word a line ", 20))
	}))
	defer server.Close()
	ctx, _ := started(t, file, server.URL)
	var got seen
	require.NoError(t, chromedp.Run(ctx, chromedp.EmulateViewport(1400, 900), chromedp.Navigate(server.URL),
		chromedp.Evaluate(look, &got)))
	assert.Len(t, got.Wide, 2, "the element, and the page that scrolls")
	for _, all := range [][]string{got.Blank, got.Scrolls, got.Cramped} {
		assert.Len(t, all, 1)
	}
}

// seen describes a page at one width.
type seen struct {
	Wide, Blank, Scrolls, Cramped []string
	Links, Anchors                []string
}

// look is evaluated on a page. A table and a block of code may scroll by themselves, and their
// contents do not count. Cramped are columns of prose that wrap after nearly every word.
const look = `(() => {
	const text = el => el.tagName.toLowerCase() + " of " + el.scrollWidth + " px: " + (el.textContent || el.src || "").trim().slice(0, 60);
	const all = (selector, is) => [...document.querySelectorAll(selector)].filter(is).map(text);
	const out = el => { const r = el.getBoundingClientRect(); return r.right > innerWidth + 1 || r.left < -1 };
	const wide = all("main *", el => out(el) && !el.parentElement.closest("table, pre"));
	if (document.documentElement.scrollWidth > innerWidth) wide.push("the page scrolls sideways");
	return {
		Wide: wide,
		Blank: all("img", el => !el.complete || el.naturalWidth === 0),
		Scrolls: all("table", el => el.scrollWidth > el.clientWidth + 1),
		Cramped: all("td", el => el.textContent.trim().length > 40 && el.clientHeight > 16 * 24),
		Links: [...document.querySelectorAll("a[href]")].map(el => el.href),
		Anchors: [...document.querySelectorAll("[id], a[name]")].map(el => el.id || el.name),
	};
})()`

func TestEveryPageFitsAPhoneAndADesk(t *testing.T) {
	file := browser(t)
	server := httptest.NewServer(http.HandlerFunc(site))
	defer server.Close()
	ctx, complaints := started(t, file, server.URL)
	do := func(actions ...chromedp.Action) {
		t.Helper()
		require.NoError(t, chromedp.Run(ctx, actions...))
	}
	do(cdplog.Enable(), network.Enable())
	links := map[string][]string{} // by page
	ids := map[string][]string{}
	for _, name := range guides(t) {
		do(chromedp.Navigate(server.URL + "/" + name))
		for _, width := range []int64{390, 1400} {
			var got seen
			do(chromedp.EmulateViewport(width, 900), chromedp.Evaluate(look, &got))
			assert.Empty(t, got.Wide, "%s at %d px: sticks out", name, width)
			assert.Empty(t, got.Blank, "%s at %d px: pictures that do not load", name, width)
			if width == 1400 {
				assert.Empty(t, got.Scrolls, "%s at %d px: scrolls sideways on a desk", name, width)
			}
			assert.Empty(t, got.Cramped, "%s at %d px: a cell as high as twelve lines", name, width)
			links[name], ids[name] = got.Links, got.Anchors
			shot := fmt.Sprintf("%s-%d", strings.NewReplacer("/", "_", ".md", "").Replace(name), width)
			if kept(shot) {
				var png []byte
				do(chromedp.FullScreenshot(&png, 100))
				keep(t, filepath.Join(shots, "..", "guides"), shot, png)
			}
		}
	}
	n := 0
	for name, all := range links {
		for _, l := range all {
			to, ok := strings.CutPrefix(l, server.URL+"/")
			if !ok {
				continue
			}
			n++
			target, anchor, _ := strings.Cut(to, "#")
			target, err := url.PathUnescape(target)
			require.NoError(t, err)
			anchor, err = url.PathUnescape(anchor)
			require.NoError(t, err)
			_, err = os.Stat(filepath.Join(repository, filepath.FromSlash(target)))
			assert.NoError(t, err, "%s: a link leads nowhere", name)
			if anchor != "" {
				assert.Contains(t, ids[target], anchor, "%s links %s, which has no such anchor", name, target)
			}
		}
	}
	assert.Greater(t, n, 500, "links")
	assert.Empty(t, complaints(), "the browser has nothing to complain about")
}
