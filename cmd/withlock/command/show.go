package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	"github.com/urfave/cli/v3"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	safe "github.com/jucgo/locks/internal/terminal"
)

// requestTimeout limits each look at the store.
const requestTimeout = 10 * time.Second

// lockView is the output of -json for a lock.
type lockView struct {
	Name    string      `json:"name"`
	Held    bool        `json:"held"`
	Shared  bool        `json:"shared,omitempty"`
	Holders []partyView `json:"holders"`
	Waiting *int        `json:"waiting"` // nil: unknown
	Waiters []partyView `json:"waiters"` // longest wait first
}

type partyView struct {
	Label       string     `json:"label,omitempty"`
	Host        string     `json:"host,omitempty"`
	PID         int        `json:"pid,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
	LeftSeconds float64    `json:"left_seconds,omitempty"`
	Token       uint64     `json:"token,omitempty"`
	Permits     int64      `json:"permits,omitempty"`
}

func viewOf(name string, info locks.Info) lockView {
	v := lockView{
		Name: name, Held: info.Held, Shared: info.Shared,
		Holders: viewsOf(info.Holders), Waiters: viewsOf(info.Waiters),
	}
	if info.Waiting >= 0 {
		v.Waiting = &info.Waiting
	}
	return v
}

func viewsOf(parties []locks.Party) []partyView {
	views := make([]partyView, 0, len(parties))
	for _, p := range parties {
		v := partyView{
			Label: p.Label, Host: p.Host, PID: p.PID, LeftSeconds: p.Left.Seconds(), Token: p.Token, Permits: p.Permits,
		}
		if !p.Since.IsZero() {
			v.Since = &p.Since
		}
		views = append(views, v)
	}
	return views
}

// row returns the columns of a party, "-" where nothing is known. Without left, the row of a hold
// stays the same while the hold is renewed.
func (p partyView) row(left bool) string {
	text := func(known bool, format string, value any) string {
		if !known {
			return "-"
		}
		return fmt.Sprintf(format, value)
	}
	since := "-"
	if p.Since != nil {
		since = p.Since.Local().Format(time.DateTime)
	}
	columns := []string{
		text(p.Label != "", "%s", safe.Line(p.Label)), text(p.Host != "", "%s", safe.Line(p.Host)),
		text(p.PID != 0, "%d", p.PID), since,
		text(left && p.LeftSeconds > 0, "%.1fs", p.LeftSeconds), text(p.Token != 0, "%d", p.Token),
	}
	if p.Permits > 0 {
		columns = append(columns, fmt.Sprint(p.Permits))
	}
	return strings.Join(columns, "\t")
}

const partyColumns = "LABEL\tHOST\tPID\tSINCE\tLEFT\tTOKEN"

// columns are the columns of the parties of v.
func (v lockView) columns() string {
	for _, p := range v.Holders {
		if p.Permits > 0 {
			return partyColumns + "\tPERMITS"
		}
	}
	return partyColumns
}

func (v lockView) state() string {
	switch {
	case !v.Held:
		return "free"
	case v.Shared:
		return "shared"
	}
	return "held"
}

func (v lockView) waiting() string {
	if v.Waiting == nil {
		return "-"
	}
	return fmt.Sprint(*v.Waiting)
}

func printJSON(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range string(text) {
		if text := string(r); safe.Line(text) == text {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) { // Marshal leaves most of them, such as U+202E
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	_, err = fmt.Fprintln(w, b.String())
	return err
}

// look opens the store for f.
func (t *tool) look(ctx context.Context, c *cli.Command, f func(ctx context.Context, store *open.Client) error) error {
	store, err := t.open(ctx, c)
	if err != nil {
		return err
	}
	defer shut(store, closing)
	return f(ctx, store)
}

// inspect asks the store for one lock.
func inspect(ctx context.Context, store *open.Client, name string) (lockView, error) {
	return view(ctx, name, store.Locker(name).(locks.Inspector))
}

func view(ctx context.Context, name string, l locks.Inspector) (lockView, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := l.Inspect(ctx)
	if err != nil {
		return lockView{}, storeFailure(ctx, err)
	}
	return viewOf(name, info), nil
}

// who shows one lock.
func (t *tool) who(ctx context.Context, c *cli.Command) error {
	name, err := oneArgument(c)
	if err != nil {
		return err
	}
	return t.look(ctx, c, func(ctx context.Context, store *open.Client) error {
		l := store.Locker(name).(locks.Inspector)
		if n := c.Int64("permits"); c.IsSet("permits") {
			if n < 1 {
				return fail(exitUsage, "-permits %d: need at least 1", n)
			}
			s, err := store.Semaphore(name, n)
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			l = s
		}
		v, err := view(ctx, name, l)
		if err != nil {
			return err
		}
		if c.Bool("json") {
			err = printJSON(t.stdout, v)
		} else {
			waiting := strings.Replace(v.waiting(), "-", "unknown", 1)
			fmt.Fprintf(t.stdout, "%s: %s, %s waiting\n", printable(name), v.state(), waiting)
			w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
			if len(v.Holders)+len(v.Waiters) > 0 {
				fmt.Fprintln(w, "\t"+v.columns())
			}
			for _, p := range v.Holders {
				fmt.Fprintln(w, "holder\t"+p.row(true))
			}
			for _, p := range v.Waiters {
				fmt.Fprintln(w, "waiter\t"+p.row(true))
			}
			err = w.Flush()
		}
		if err == nil && !v.Held {
			err = failure{code: exitFree}
		}
		return err
	})
}

// all returns the locks of the store that match the pattern of the command line. A pattern without
// special characters is a name, also where the store lacks a list of names.
func (t *tool) all(ctx context.Context, c *cli.Command, store *open.Client) ([]lockView, error) {
	pattern := c.Args().First()
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	names, err := store.Names(limited, pattern)
	cancel()
	if errors.Is(err, errors.ErrUnsupported) && pattern != "" && !strings.ContainsAny(pattern, `*?[\`) {
		names, err = []string{pattern}, nil
	}
	if err != nil {
		return nil, storeFailure(ctx, err)
	}
	views := make([]lockView, len(names))
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(inspections)
	for i, name := range names {
		requests.Go(func() (err error) {
			if views[i], err = inspect(ctx, store, name); errors.Is(err, locks.ErrForeign) && name != pattern {
				err = nil // such as a semaphore, which some stores list too
			}
			return err
		})
	}
	err = requests.Wait()
	return slices.DeleteFunc(views, func(v lockView) bool { return v.Name == "" }), err
}

// inspections is how many locks are asked for at a time.
const inspections = 8

// table prints a row for each holder, and one for each lock without a known holder.
func table(w io.Writer, views []lockView, left bool) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "NAME\tSTATE\tWAITING\t"+partyColumns)
	for _, v := range views {
		holders := v.Holders
		if len(holders) == 0 {
			holders = []partyView{{}}
		}
		for _, p := range holders {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\n", printable(v.Name), v.state(), v.waiting(), p.row(left))
		}
	}
	return tw.Flush()
}

// printable returns name, quoted if a terminal could take a part of it for a command. Anybody may
// have chosen the name.
func printable(name string) string {
	if safe.Line(name) != name {
		return strconv.Quote(name)
	}
	return name
}

func noMoreThanPattern(c *cli.Command) error {
	if c.Args().Len() > 1 {
		return fail(exitUsage, "need at most one pattern: %s [PATTERN]", c.FullName())
	}
	return nil
}

// list shows all locks.
func (t *tool) list(ctx context.Context, c *cli.Command) error {
	if err := noMoreThanPattern(c); err != nil {
		return err
	}
	return t.look(ctx, c, func(ctx context.Context, store *open.Client) error {
		views, err := t.all(ctx, c, store)
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			return printJSON(t.stdout, views)
		}
		return table(t.stdout, views, true)
	})
}

// force frees one lock.
func (t *tool) force(ctx context.Context, c *cli.Command) error {
	name, err := oneArgument(c)
	if err != nil {
		return err
	}
	if !c.Bool("yes") {
		return fail(exitUsage, "the holder of %q would go on without the lock: confirm with -yes", name)
	}
	return t.look(ctx, c, func(ctx context.Context, store *open.Client) error {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		freed, err := store.ForceUnlock(ctx, name)
		if err != nil {
			return storeFailure(ctx, err)
		}
		if c.Bool("json") {
			err = printJSON(t.stdout, map[string]any{"name": name, "freed": freed})
		} else {
			outcome := map[bool]string{true: "freed", false: "was not held"}[freed]
			_, err = fmt.Fprintf(t.stdout, "%s: %s\n", printable(name), outcome)
		}
		if err == nil && !freed {
			err = failure{code: exitFree}
		}
		return err
	})
}

// watch shows all locks again and again. An error of the store is shown in their place.
func (t *tool) watch(ctx context.Context, c *cli.Command) error {
	if err := noMoreThanPattern(c); err != nil {
		return err
	}
	every := c.Duration("every")
	if every <= 0 {
		return fail(exitUsage, "-every %v: need a positive time", every)
	}
	ending := slices.DeleteFunc(slices.Clone(forwardedSignals), func(s os.Signal) bool {
		return endingSignal(s) == 0 || signal.Ignored(s) // a terminal that changes its size ends nothing
	})
	ctx, stop := signal.NotifyContext(ctx, ending...)
	defer stop()
	store, err := t.open(ctx, c)
	if err != nil {
		return err
	}
	defer shut(store, closing)
	out, isFile := t.stdout.Writer.(*os.File)
	live := isFile && term.IsTerminal(int(out.Fd())) && !c.Bool("json")
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := ""
	for ctx.Err() == nil && t.stdout.err == nil {
		text, err := t.picture(ctx, c, store, live)
		if err != nil {
			return err
		}
		if live {
			head := safe.Line(store.String()) + "  " + time.Now().Format(time.DateTime)
			fmt.Fprintf(t.stdout, "\x1b[H\x1b[2J%s\n\n%s", head, text)
		} else if text != last && ctx.Err() == nil {
			fmt.Fprint(t.stdout, text)
		}
		last = text
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

// picture returns the table of all locks, or the error of a store that is out of reach.
func (t *tool) picture(ctx context.Context, c *cli.Command, store *open.Client, left bool) (string, error) {
	views, err := t.all(ctx, c, store)
	var b strings.Builder
	var f failure
	switch {
	case err == nil && c.Bool("json"):
		for i := range views {
			for j := range views[i].Holders {
				views[i].Holders[j].LeftSeconds = 0 // it would change each time
			}
		}
		err = printJSON(&b, views)
	case err == nil:
		err = table(&b, views, left)
	case asUsage(err, &f):
		return "", f
	case c.Bool("json"):
		err = printJSON(&b, map[string]string{"error": oneLine(err)})
	default:
		fmt.Fprintln(&b, "withlock: "+oneLine(err))
		err = nil
	}
	return b.String(), err
}

// asUsage sets f to err if it is an error of the command line, which stays.
func asUsage(err error, f *failure) bool { return errors.As(err, f) && f.code == exitUsage }
