package locksdebug

import (
	"fmt"
	"html/template"
	"strings"
)

// Sizes of the graphs, in pixels.
const (
	nodeWidth  = 190
	nodeHeight = 42
	gapX       = 110
	gapY       = 56
	margin     = 12
)

// drawing is the text of a picture.
type drawing struct{ strings.Builder }

func (d *drawing) begin(width, height int, title string) {
	fmt.Fprintf(d, `<svg width="%d" height="%d" viewBox="0 0 %d %d" role="img"><title>%s</title>`,
		width, height, width, height, escape(title))
}

func (d *drawing) end() template.HTML {
	d.WriteString("</svg>")
	return template.HTML(d.String())
}

// node draws a box with two lines.
func (d *drawing) node(x, y int, class, title, subtitle string) {
	fmt.Fprintf(d, `<g><title>%s %s</title><rect class="node %s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`,
		escape(title), escape(subtitle), class, x, y, nodeWidth, nodeHeight)
	middle := x + nodeWidth/2
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="middle">%s</text>`, middle, y+17, escape(short(title, 26)))
	d.label(middle, y+33, "middle", short(subtitle, 30))
	d.WriteString("</g>")
}

// label writes a small text, of which the anchor is at x.
func (d *drawing) label(x, y int, anchor, text string) {
	fmt.Fprintf(d, `<text class="small" x="%d" y="%d" text-anchor="%s">%s</text>`, x, y, anchor, escape(text))
}

// arrow draws an edge from one point to another one, with a label beside its middle.
func (d *drawing) arrow(x1, y1, x2, y2 int, label string) {
	fmt.Fprintf(d, `<path class="edge" d="M%d %dL%d %d"/>`, x1, y1, x2, y2)
	switch { // the tip
	case x2 > x1:
		fmt.Fprintf(d, `<path class="tip" d="M%d %dl-8 -4v8z"/>`, x2, y2)
	case x2 < x1:
		fmt.Fprintf(d, `<path class="tip" d="M%d %dl8 -4v8z"/>`, x2, y2)
	case y2 > y1:
		fmt.Fprintf(d, `<path class="tip" d="M%d %dl-4 -8h8z"/>`, x2, y2)
	default:
		fmt.Fprintf(d, `<path class="tip" d="M%d %dl-4 8h8z"/>`, x2, y2)
	}
	if x1 == x2 {
		d.label(x1+8, (y1+y2)/2+4, "start", label)
	} else {
		d.label((x1+x2)/2, (y1+y2)/2-6, "middle", label)
	}
}

// short cuts a text to n characters. It keeps the end, by which names of one kind differ.
func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		head := (n - 1) / 3
		return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
	}
	return text
}

// cycleGraph draws a cycle as a ring of two rows. An edge leads from each party to the lock that it
// waits for, and from the lock to the party that holds it.
func cycleGraph(c cycle) template.HTML {
	type node struct{ class, title, subtitle, edge string }
	var nodes []node
	for _, s := range c.Steps {
		wait := "waits"
		if s.Wait.Seconds != nil {
			wait += " " + duration(*s.Wait.Seconds)
		}
		held := "held by"
		if s.Behind {
			held = "queue behind"
		}
		nodes = append(nodes, node{"of-party", s.Wait.Owner, s.Wait.At, wait}, node{"of-lock", s.Lock, "lock", held})
	}
	columns := len(nodes) / 2
	if columns == 1 { // of one party, which waits for itself
		columns = 2
	}
	at := func(i int) (x, y int) {
		column, row := i, 0
		if i >= columns {
			column, row = 2*columns-1-i, 1
		}
		return margin + column*(nodeWidth+gapX), margin + row*(nodeHeight+gapY)
	}
	var d drawing
	d.begin(2*margin+columns*nodeWidth+(columns-1)*gapX, 2*margin+2*nodeHeight+gapY,
		fmt.Sprintf("A cycle of %s", count(len(c.Steps), "wait")))
	for i, n := range nodes {
		x, y := at(i)
		toX, toY := at((i + 1) % len(nodes))
		switch {
		case toX > x:
			d.arrow(x+nodeWidth, y+nodeHeight/2, toX, toY+nodeHeight/2, n.edge)
		case toX < x:
			d.arrow(x, y+nodeHeight/2+4, toX+nodeWidth, toY+nodeHeight/2+4, n.edge)
		case toY > y:
			d.arrow(x+nodeWidth/2, y+nodeHeight, toX+nodeWidth/2, toY, n.edge)
		default:
			d.arrow(x+nodeWidth/2, y, toX+nodeWidth/2, toY+nodeHeight, n.edge)
		}
		d.node(x, y, n.class, n.title, n.subtitle)
	}
	return d.end()
}

// drawnWaiters is how many waiters of an orphan are drawn.
const drawnWaiters = 5

// orphanGraph draws the waiters of a lock, the lock, and its holder that has exited.
func orphanGraph(o orphan) template.HTML {
	shown := o.Waiters[:min(len(o.Waiters), drawnWaiters)]
	rows := len(shown)
	if rows < len(o.Waiters) {
		rows++
	}
	const step = nodeHeight + 10
	height := 2*margin + rows*step - 10
	middle := height / 2
	column := func(n int) int { return margin + n*(nodeWidth+gapX) }
	var d drawing
	d.begin(2*margin+3*nodeWidth+2*gapX, height, "An orphan with "+count(len(o.Waiters), "waiter"))
	for i := range rows {
		y := margin + i*step
		title, subtitle, edge := fmt.Sprintf("%d more", len(o.Waiters)-len(shown)), "waiters", ""
		if i < len(shown) {
			title, subtitle = shown[i].Owner, shown[i].At
			if shown[i].Seconds != nil {
				edge = duration(*shown[i].Seconds)
			}
		}
		fmt.Fprintf(&d, `<path class="edge" d="M%d %dL%d %d"/>`, column(0)+nodeWidth, y+nodeHeight/2, column(1), middle)
		d.label(column(0)+nodeWidth+8, y+nodeHeight/2-6, "start", edge)
		d.node(column(0), y, "of-party", title, subtitle)
	}
	fmt.Fprintf(&d, `<path class="tip" d="M%d %dl-8 -4v8z"/>`, column(1), middle)
	d.arrow(column(1)+nodeWidth, middle, column(2), middle, "held by")
	d.node(column(1), middle-nodeHeight/2, "of-lock", o.Lock, "lock")
	d.node(column(2), middle-nodeHeight/2, "gone", o.Owner, "exited")
	return d.end()
}

// bar draws how much of a lease is left.
func bar(l lease) template.HTML {
	const width = 60
	part := 0
	if l.TTL > 0 {
		part = min(int(width*l.Left/l.TTL), width)
	}
	class := "left"
	if 3*l.Left < l.TTL {
		class = "low"
	}
	return template.HTML(fmt.Sprintf(`<svg class="bar" width="%d" height="8" aria-hidden="true">`+
		`<rect class="rest" width="%d" height="8" rx="2"/>`+
		`<rect class="%s" width="%d" height="8" rx="2"/></svg>`, width, width, class, part))
}
