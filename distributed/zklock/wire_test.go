package zklock

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// server is the other end of a wire: what it has to say, in pieces of a size, and what it was told.
type server struct {
	net.Conn // none
	says     bytes.Reader
	piece    int
	told     bytes.Buffer
}

func (s *server) Read(b []byte) (int, error)      { return s.says.Read(b[:min(len(b), s.piece)]) }
func (s *server) Write(b []byte) (int, error)     { return s.told.Write(b) }
func (s *server) Close() error                    { return nil }
func (s *server) SetReadDeadline(time.Time) error { return nil }

// frame returns the parts, 32-bit and 64-bit numbers and texts, with their length in front.
func frame(parts ...any) []byte {
	b := make([]byte, 4)
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(p))
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
			b = append(b, p...)
		}
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// greetings is a server's first answer: version, session timeout, session, password.
var greetings = frame(0, 10000, int64(77), "password")

// talk has a session send requests, and read answers that come in pieces.
func talk(t *testing.T, s *session, piece int, requests, answers [][]byte) (told []byte) {
	t.Helper()
	all := append([][]byte{greetings}, answers...)
	peer := &server{piece: piece, says: *bytes.NewReader(bytes.Join(all, nil))}
	w := newWire(s, peer, time.Now().Add(time.Minute))
	close(w.watches)
	read := func(want []byte) {
		t.Helper()
		head := make([]byte, 4) // in two steps, as the client does
		_, err := io.ReadFull(w, head)
		require.NoError(t, err)
		body := make([]byte, binary.BigEndian.Uint32(head))
		_, err = io.ReadFull(w, body)
		require.NoError(t, err)
		require.Equal(t, want, append(head, body...))
	}
	read(greetings)
	for _, r := range requests {
		before := bytes.Clone(r)
		n, err := w.Write(r)
		require.NoError(t, err)
		require.Equal(t, len(r), n)
		require.Equal(t, before, r, "it is the client's")
	}
	for _, a := range answers {
		read(a)
	}
	_, err := w.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	return peer.told.Bytes()
}

func newTalker() *session {
	s := &session{}
	s.births.m = make(map[string]*birth)
	return s
}

func TestTheWireAsksForTheStateOfWhatIsMadeAndReadsItHoweverTheAnswersCome(t *testing.T) {
	const first, second, other = "/it/_c_1-lock-", "/it/_c_2-lock-", "/other"
	rest := string(bytes.Repeat([]byte{1}, 60)) // of the state
	requests := [][]byte{
		frame(1, opCreate, other, "data", 0),
		frame(2, opCreate, first, "data", 0),
		frame(3, 4, first), // another request, of the same path
		frame(4, opCreate, second, "data", 0),
	}
	answers := [][]byte{
		frame(-1, int64(-1), 0, 3, 3, first), // an event
		frame(1, int64(5), 0, other),
		frame(-2, int64(6), 0), // a sign of life
		frame(2, int64(6), 0, first+"0000000000", int64(6001), rest),
		frame(3, int64(6), 0, int64(4)),
		frame(4, int64(7), -101, second, int64(7001), rest), // it was not made
	}
	for piece := 1; piece < 300; piece++ {
		s := newTalker()
		a, b := s.births.begin(first), s.births.begin(second)
		told := talk(t, s, piece, requests, answers)
		require.EqualValues(t, 6001, a.czxid)
		require.Zero(t, b.czxid)
		want := bytes.Join([][]byte{requests[0], frame(2, opCreate2, first, "data", 0), requests[2],
			frame(4, opCreate2, second, "data", 0)}, nil)
		require.Equal(t, want, told)
		for _, m := range []*birth{a, b} {
			<-m.sent
			require.False(t, m.never)
			s.births.end(m)
		}
		require.Empty(t, s.births.m)
	}
}

func TestTheWireDoesWithoutAStateThatIsNotThere(t *testing.T) {
	const path = "/it/_c_1-lock-"
	for name, answer := range map[string][]byte{
		"an old server's": frame(1, int64(6), 0, path+"0000000000"),
		"a part":          frame(1, int64(6), 0, path+"0000000000", 1),
		"a wrong length":  frame(1, int64(6), 0, 1<<20, int64(9)),
		"too long":        frame(1, int64(6), 0, string(bytes.Repeat([]byte{'a'}, 1<<20)), int64(9)),
		"no path":         frame(1, int64(6), 0),
		"a header's part": frame(1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newTalker()
			m := s.births.begin(path)
			talk(t, s, 1000, [][]byte{frame(1, opCreate, path, "data", 0)}, [][]byte{answer})
			require.Zero(t, m.czxid)
		})
	}
}

func TestABirthThatIsOverBeforeItWasSentIsNotWaitedFor(t *testing.T) {
	s := newTalker()
	m := s.births.begin("/it")
	s.births.end(m)
	<-m.sent
	require.True(t, m.never)
}

// broken is a connection on which nothing can be written.
type broken struct {
	net.Conn // none
	closed   bool
}

func (b *broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (b *broken) Close() error              { b.closed = true; return nil }

func TestARequestThatCannotBeWrittenEndsTheConnectionAndIsNoErrorOfItsOwn(t *testing.T) {
	s := newTalker()
	m := s.births.begin("/it")
	for _, begun := range []bool{false, true} {
		b := &broken{}
		w := newWire(s, b, time.Now().Add(time.Minute))
		w.begun.Store(begun)
		r := frame(1, opCreate, "/it", "data", 0)
		n, err := w.Write(r)
		require.NoError(t, err)
		require.Equal(t, len(r), n)
		require.True(t, b.closed)
	}
	<-m.sent
}
