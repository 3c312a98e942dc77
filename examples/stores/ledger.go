package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ledger is the resource that the lock guards: a file with a line for each sale. It is not safe
// for concurrent use. It checks fencing tokens, but the check and the write are two steps. In a
// database they would be one.
type ledger struct{ path string }

type sale struct {
	number int
	token  uint64
	who    string
}

var errStale = errors.New("the ledger was written to under a later fencing token")

// all returns the sales. It returns none if the file does not exist yet.
func (l ledger) all() ([]sale, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	var sales []sale
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s sale
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &s.number, &s.token); err != nil {
			return nil, fmt.Errorf("the ledger has a line %q: %w", lines.Text(), err)
		}
		s.who = strings.SplitN(lines.Text(), " ", 3)[2]
		sales = append(sales, s)
	}
	return sales, lines.Err()
}

// last returns the last sale, a zero one if there is none.
func (l ledger) last() (sale, error) {
	sales, err := l.all()
	if err != nil || len(sales) == 0 {
		return sale{}, err
	}
	return sales[len(sales)-1], nil
}

// add writes a sale, unless its token is smaller than the last token.
func (l ledger) add(s sale) error {
	last, err := l.last()
	if err != nil {
		return err
	}
	if s.token < last.token {
		return fmt.Errorf("ticket %d by %s with token %d: %w", s.number, s.who, s.token, errStale)
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d %s\n", s.number, s.token, s.who)
	return errors.Join(err, f.Close())
}

// check returns all sales, and an error unless they are of the numbers 1 to n in this order.
func (l ledger) check(n int) ([]sale, error) {
	sales, err := l.all()
	if err != nil {
		return nil, err
	}
	for i, s := range sales {
		if s.number != i+1 {
			return nil, fmt.Errorf("ticket %d was sold where ticket %d was next: the lock did not exclude",
				s.number, i+1)
		}
	}
	if len(sales) != n {
		return nil, fmt.Errorf("%d tickets were sold, not %d", len(sales), n)
	}
	return sales, nil
}
