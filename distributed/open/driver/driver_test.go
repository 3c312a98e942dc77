package driver_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened has the Openings of the schemes below, in order.
var opened []*driver.Opening

func note(_ context.Context, o *driver.Opening) error {
	opened = append(opened, o)
	return nil
}

// failing is the scheme of a store whose client returns this error.
var failing error

// silent is set when the client of loud prints nothing any more.
var silent bool

// halfway runs while a store is opened that fails with errHalfway.
var halfway func(o *driver.Opening)

var errHalfway = errors.New("no more")

func init() {
	driver.Register(
		driver.Scheme{Name: "many", Form: "many://HOSTS", Port: "7001", Many: true, Kinds: []string{"plain"},
			More: append(driver.Leased(), driver.Certificate()...), Open: note},
		driver.Scheme{Name: "bucket", Form: "bucket://NAME/PREFIX", Port: driver.NoPort, Kinds: []string{"plain"}, Open: note},
		driver.Scheme{Name: "folder", Form: "folder:PATH", Kinds: []string{"plain"}, Open: note},
		driver.Scheme{Name: "halfway", Form: "halfway:PATH", Kinds: []string{"plain"},
			Open: func(_ context.Context, o *driver.Opening) error {
				halfway(o)
				return errHalfway
			}},
		driver.Scheme{Name: "loud", Form: "loud:PATH", Kinds: []string{"plain"}, Open: note,
			Silence: func() { silent = true }, NoAnswer: func(err error) bool { return err == errHalfway }},
		driver.Scheme{Name: "failing", Form: "failing://HOST", Port: "1", Kinds: []string{"plain"}, More: []string{"password"},
			Open: func(_ context.Context, o *driver.Opening) error { return o.Failed(failing, false) }},
	)
}

func open(t *testing.T, url string, opts ...driver.Options) *driver.Opening {
	t.Helper()
	var given driver.Options
	if len(opts) > 0 {
		given = opts[0]
	}
	o, err := driver.Open(t.Context(), url, given)
	require.NoError(t, err, url)
	require.Same(t, opened[len(opened)-1], o)
	return o
}

// stores are the schemes of this repository that need an import, with the packages.
var stores = map[string]string{
	"file": "filelock/fileopen", "sqlite": "sqllock/sqliteopen", "postgres": "sqllock/postgresopen",
	"mysql": "sqllock/mysqlopen", "redis": "redislock/redisopen", "rediss": "redislock/redisopen",
	"redis+sentinel": "redislock/redisopen", "redis+cluster": "redislock/redisopen", "zk": "zklock/zkopen",
	"etcd": "etcdlock/etcdopen", "consul": "consullock/consulopen", "nats": "natslock/natsopen",
	"s3": "s3lock/s3open", "dynamodb": "dynamolock/dynamodbopen", "gs": "gcslock/gsopen",
	"kubernetes": "k8slock/kubernetesopen",
}

func TestAStoreThatIsNotImportedIsNamed(t *testing.T) {
	for scheme, pkg := range stores {
		_, err := driver.Open(t.Context(), scheme+"://user:secret@host/1", driver.Options{})
		require.ErrorIs(t, err, driver.ErrURL)
		require.ErrorContains(t, err, `import _ "github.com/jucgo/locks/distributed/`+pkg+`"`)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestAnUnknownSchemeIsRefusedWithTheKnownOnes(t *testing.T) {
	_, err := driver.Open(t.Context(), "vault://localhost", driver.Options{})
	require.ErrorIs(t, err, driver.ErrURL)
	_, known, _ := strings.Cut(err.Error(), "begin with one of ")
	for scheme := range stores {
		require.Contains(t, strings.Split(known, ", "), scheme+":")
	}
	require.True(t, strings.HasSuffix(known, "kubernetes:, bucket:, failing:, folder:, halfway:, loud:, many:, shop:"), known)
}

func TestASchemeIsRegisteredOnce(t *testing.T) {
	require.PanicsWithValue(t, "open: the scheme shop is registered twice", func() {
		driver.Register(driver.Scheme{Name: "shop"})
	})
	require.Equal(t, []string{"bucket", "failing", "folder", "halfway", "loud", "many", "shop"}, driver.Registered())
}

func TestTheOpeningHasThePartsOfTheURL(t *testing.T) {
	o := open(t, "MANY://us%2Fer:pass%40word@first,second:80,[::1]/a/b%20c?label=me%26you&ttl=90")
	require.Equal(t, "us/er", o.User)
	require.Equal(t, "pass@word", o.Password)
	require.Equal(t, []string{"first:7001", "second:80", "[::1]:7001"}, o.Hosts)
	require.Equal(t, "a/b c", o.Path)
	require.Equal(t, "me&you", o.Label)
	require.Equal(t, "1m30s", o.TTL.String())
	require.Equal(t, "many://first:7001,second:80,[::1]:7001/a/b c", o.About)
	require.Equal(t, "plain", o.Kind())

	o = open(t, "many://?kind=plain", driver.Options{Label: "flag"})
	require.Equal(t, []string{"localhost:7001"}, o.Hosts)
	require.Equal(t, "flag", o.Label)

	o = open(t, "bucket://name/pre/fix")
	require.Equal(t, []string{"name"}, o.Hosts)
	require.Equal(t, "pre/fix", o.Path)

	require.Equal(t, "a/b", open(t, "folder:a/b").Path)
	require.Equal(t, "/a/b", open(t, "folder:/a/b").Path)
	require.Equal(t, "/a/b", open(t, "folder:///a/b").Path)
}

func TestOptionsWinOverParameters(t *testing.T) {
	o := open(t, "many://h?ttl=10s&label=url", driver.Options{TTL: 20, Label: "flag", Lease: []lease.Option{nil}})
	require.EqualValues(t, 20, o.TTL)
	require.Equal(t, "flag", o.Label)
	require.Len(t, o.Lease, 3, "the time, the label, and the option that follows")
	_, err := driver.Open(t.Context(), "many://h?ttl=10s", driver.Options{TTL: -1})
	require.ErrorIs(t, err, driver.ErrURL)
	require.ErrorContains(t, err, "WithTTL(-1ns)")
}

func TestAWrongURLIsRefusedWithTheReason(t *testing.T) {
	for url, why := range map[string]string{
		"many:h":               "the form is many://HOSTS",
		"many://h:port":        "a port must be a number",
		"many://h:0":           "a port must be a number",
		"many://a b":           "a host must be a name",
		"many://[x]":           "an address of IPv6",
		"many://h#":            "%23",
		"many://h\n":           "control character, such as the end of a line",
		"many://u:%zz@h":       "hexadecimal",
		"many://h/%zz":         "hexadecimal",
		"many://h/a@b":         "%40",
		"many://h?label=%zz":   "hexadecimal",
		"many://h?label=":      "no value",
		"many://h?label=a%0Ab": "control character",
		"many://h?ttl=1&ttl=2": "twice",
		"many://h?ttl=0":       "a duration above 0",
		"many://h?kind=fancy":  "one of plain",
		"many://h?colour=red":  `"colour". Known are cacert, cert, key, kind, label, ttl`,
		"shop://a,b/1":         "several hosts",
		"shop://a/1?color=x":   "one of green, red",
		"bucket://h:9000":      "the form is bucket://",
		"bucket://":            "the form is bucket://",
		"folder:":              "the form is folder:PATH",
		"folder://host/a":      "names a host",
		"folder:a%00b":         "NUL",
	} {
		_, err := driver.Open(t.Context(), url, driver.Options{})
		require.ErrorIs(t, err, driver.ErrURL, url)
		require.NotErrorIs(t, err, lease.ErrUnreachable, url)
		require.ErrorContains(t, err, why, url)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestAClientsErrorLosesItsSecrets(t *testing.T) {
	const password = "ge/h@e?i m"
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
		failing = fmt.Errorf("dial ada:%s:\n %w", form, errors.New("refused "+form))
		for _, text := range []string{
			"failing://ada:" + url.QueryEscape(password) + "@h", "failing://ada@h?password=" + url.QueryEscape(password),
		} {
			text = strings.ReplaceAll(text, "+", "%20")
			_, err := driver.Open(t.Context(), text, driver.Options{})
			require.ErrorIs(t, err, lease.ErrUnreachable)
			require.EqualError(t, err, "open: failing://h:1: "+lease.ErrUnreachable.Error()+
				": dial xxxxx:xxxxx: refused xxxxx")
			require.NotErrorIs(t, err, failing, "its text has the password")
		}
	}
}

func TestCloseEndsTheLastPartFirst(t *testing.T) {
	o := open(t, "many://h")
	var ended []int
	for i := range 3 {
		o.OnClose(func(context.Context) error {
			ended = append(ended, i)
			return nil
		})
	}
	require.NoError(t, o.Close(t.Context()))
	require.NoError(t, o.Close(t.Context()))
	require.Equal(t, []int{2, 1, 0}, ended)
}

func TestAFailureClosesWhatWasOpened(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	closed := false
	halfway = func(o *driver.Opening) {
		o.OnClose(func(ctx context.Context) error {
			closed = ctx.Err() == nil
			return nil
		})
		cancel()
	}
	_, err := driver.Open(ctx, "halfway:x", driver.Options{})
	require.ErrorIs(t, err, errHalfway)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, closed)
}

func TestCommandsSilenceTheClientsOfStores(t *testing.T) {
	silent = false
	driver.Silence()
	require.True(t, silent)
}

func TestAStoreRecognizesThatItsClientGotNoAnswer(t *testing.T) {
	require.True(t, driver.NoAnswer(errHalfway))
	require.False(t, driver.NoAnswer(errors.New("another")))
}
