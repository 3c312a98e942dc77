package locksdebug

import (
	"cmp"
	"fmt"
)

// Sizes of the graphs, in pixels. The template has the size of a node too.
const (
	nodeWidth  = 190
	nodeHeight = 42
	gapX       = 110
	gapY       = 56
	margin     = 12
)

// drawing is a graph at its places. The template of the page draws it.
type drawing struct {
	Title         string
	Width, Height int
	Nodes         []node
	Edges         []edge
}

// node is a box around a point, with two lines of text.
type node struct {
	Class, Title, Subtitle string
	X, Y                   int // of its middle
}

// Left and Top return the corner of the box.
func (n node) Left() int { return n.X - nodeWidth/2 }
func (n node) Top() int  { return n.Y - nodeHeight/2 }

// edge is an arrow with a label.
type edge struct {
	X1, Y1, X2, Y2 int
	Label          string
	LabelX, LabelY int
	Anchor         string // of the label
}

// connect adds an edge between the sides of two nodes in one row or one column.
func (d *drawing) connect(from, to node, label string) {
	right, down := cmp.Compare(to.X, from.X), cmp.Compare(to.Y, from.Y)
	e := edge{
		X1: from.X + right*nodeWidth/2, Y1: from.Y + down*nodeHeight/2,
		X2: to.X - right*nodeWidth/2, Y2: to.Y - down*nodeHeight/2, Label: label,
	}
	if right < 0 { // there may be an edge to the right too
		e.Y1 += 4
		e.Y2 += 4
	}
	if right == 0 {
		e.LabelX, e.LabelY, e.Anchor = e.X1+8, (e.Y1+e.Y2)/2+4, "start"
	} else {
		e.LabelX, e.LabelY, e.Anchor = (e.X1+e.X2)/2, e.Y1-6, "middle"
	}
	d.Edges = append(d.Edges, e)
}

// short cuts a text to n characters. It keeps the end, where names of one kind differ.
func short(text string, n int) string {
	if r := []rune(text); len(r) > n {
		head := (n - 1) / 3
		return string(r[:head]) + "…" + string(r[len(r)-(n-1-head):])
	}
	return text
}

// cycleGraph draws a cycle as a ring of two columns, which a phone has room for. An edge leads from
// each party to the lock that the party waits for, and from the lock to the party that holds it.
func cycleGraph(c cycle) (d drawing) {
	rows := len(c.Steps)
	d.Title = "A cycle of " + count(rows, "wait")
	d.Width = 2*margin + 2*nodeWidth + gapX
	d.Height = 2*margin + rows*nodeHeight + (rows-1)*gapY
	var labels []string
	add := func(class, title, subtitle, label string) {
		column, row := 0, len(d.Nodes)
		if row >= rows {
			column, row = 1, 2*rows-1-row
		}
		x, y := margin+column*(nodeWidth+gapX)+nodeWidth/2, margin+row*(nodeHeight+gapY)+nodeHeight/2
		d.Nodes = append(d.Nodes, node{class, title, subtitle, x, y})
		labels = append(labels, label)
	}
	for _, s := range c.Steps {
		wait, held := "waits", "held by"
		if s.Wait.Seconds != nil {
			wait += " " + duration(*s.Wait.Seconds)
		}
		if s.Behind {
			held = "queue behind"
		}
		add("of-party", s.Wait.Owner, s.Wait.At, wait)
		add("of-lock", s.Lock, "lock", held)
	}
	for i, n := range d.Nodes {
		d.connect(n, d.Nodes[(i+1)%len(d.Nodes)], labels[i])
	}
	return d
}

// drawnWaiters is how many waiters of an orphan are drawn.
const drawnWaiters = 5

// orphanGraph draws the waiters of a lock, the lock, and below it the holder that has exited.
func orphanGraph(o orphan) (d drawing) {
	const step = nodeHeight + 10
	drawn := min(len(o.Waiters), drawnWaiters)
	rows := min(len(o.Waiters), drawnWaiters+1)
	d.Title = "An orphan with " + count(len(o.Waiters), "waiter")
	d.Width = 2*margin + 2*nodeWidth + gapX
	d.Height = 2*margin + max(rows*step-10, 2*nodeHeight+gapY)
	column := func(n int) int { return margin + n*(nodeWidth+gapX) + nodeWidth/2 }
	held := node{"of-lock", o.Lock, "lock", column(1), margin + nodeHeight/2}
	gone := node{"gone", o.Owner, "exited", column(1), held.Y + nodeHeight + gapY}
	d.Nodes = []node{held, gone}
	d.connect(held, gone, "held by")
	for i := range rows {
		n := node{Class: "of-party", X: column(0), Y: margin + i*step + nodeHeight/2}
		time := ""
		if i < drawn {
			w := o.Waiters[i]
			n.Title, n.Subtitle = w.Owner, w.At
			if w.Seconds != nil {
				time = duration(*w.Seconds)
			}
		} else {
			n.Title, n.Subtitle = fmt.Sprintf("%d more", len(o.Waiters)-drawn), "waiters"
		}
		right := n.X + nodeWidth/2
		d.Nodes = append(d.Nodes, n)
		d.Edges = append(d.Edges, edge{right, n.Y, held.Left(), held.Y, time, right + 8, n.Y - 6, "start"})
	}
	return d
}

// Low reports whether less than a third of a lease is left.
func (l lease) Low() bool { return 3*l.Left < l.TTL }
