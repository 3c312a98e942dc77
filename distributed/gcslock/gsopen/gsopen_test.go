package gsopen

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/open/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers all requests until the test ends.
func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (url string) {
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s.URL
}

// account writes the file of a user whose tokens come from a server.
func account(t *testing.T, tokens string) string {
	path := filepath.Join(t.TempDir(), "account.json")
	file := `{"type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "refresh",
		"token_uri": "` + tokens + `"}`
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	return path
}

// closing closes what o has opened when the test ends.
func closing(t *testing.T, o *driver.Opening) {
	t.Cleanup(func() { require.NoError(t, o.Close(context.Background())) })
}

// got returns what a server answers.
func got(t *testing.T, client *http.Client, url string) string {
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

func authorization(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, r.Header.Get("Authorization"))
}

// token answers a request for one.
func token(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"access_token": "of-ada", "token_type": "Bearer", "expires_in": 3600}`)
}

func TestRequestsToGoogleHaveTheCredentialsOfTheEnvironment(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, serve(t, token)))
	o := &driver.Opening{}
	closing(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	client, err := connect(ctx, o, "")
	require.NoError(t, err)
	cancel() // the store is open, and gets its tokens later
	require.Equal(t, "Bearer of-ada", got(t, client, serve(t, authorization)))
}

func TestARequestForATokenThatHangsEnds(t *testing.T) {
	end := make(chan struct{})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, serve(t, func(http.ResponseWriter, *http.Request) { <-end })))
	defer close(end)
	before := patience
	defer func() { patience = before }()
	patience = 10 * time.Millisecond
	o := &driver.Opening{}
	closing(t, o)
	client, err := connect(t.Context(), o, "")
	require.NoError(t, err)
	_, err = client.Get("https://unused.example")
	require.ErrorContains(t, err, "Client.Timeout exceeded")
}

func TestARedirectGetsNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, serve(t, token)))
	o := &driver.Opening{}
	closing(t, o)
	client, err := connect(t.Context(), o, "")
	require.NoError(t, err)
	elsewhere := serve(t, authorization)
	redirects := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	require.NotContains(t, got(t, client, redirects), "of-ada")
}

func TestAnotherServerGetsNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, "http://unused.example"))
	o := &driver.Opening{}
	closing(t, o)
	url := serve(t, authorization)
	client, err := connect(t.Context(), o, url)
	require.NoError(t, err)
	require.Empty(t, got(t, client, url))
}

func TestMissingCredentialsAreAnError(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "missing.json"))
	o := &driver.Opening{}
	closing(t, o)
	_, err := connect(t.Context(), o, "")
	require.ErrorContains(t, err, "missing.json")
}

// muted is a listener whose connections say nothing any more once they are muted.
type muted struct {
	net.Listener
	now atomic.Bool
}

type mutedConn struct {
	net.Conn
	of *muted
}

func (l *muted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return mutedConn{c, l}, err
}

func (c mutedConn) Write(p []byte) (int, error) {
	if c.of.now.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func TestADeadConnectionIsGivenUp(t *testing.T) {
	before := ping
	defer func() { ping = before }()
	ping = 500 * time.Millisecond
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto)
	}))
	l := &muted{Listener: s.Listener}
	s.Listener, s.EnableHTTP2 = l, true
	s.StartTLS()
	t.Cleanup(s.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, certificate, 0o600))
	o := &driver.Opening{Params: map[string]string{"cacert": authority}}
	closing(t, o)
	client, err := connect(t.Context(), o, s.URL)
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", got(t, client, s.URL))
	l.now.Store(true)
	_, err = client.Get(s.URL)
	require.ErrorContains(t, err, "connection lost")
}
