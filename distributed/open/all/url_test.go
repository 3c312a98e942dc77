package all_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
)

// refused returns the text of the error of a wrong URL.
func refused(t *testing.T, url string, opts ...open.Option) string {
	t.Helper()
	_, err := open.URL(t.Context(), url, opts...)
	require.ErrorIs(t, err, open.ErrURL, url)
	require.NotErrorIs(t, err, open.ErrUnreachable, url)
	require.True(t, strings.HasPrefix(err.Error(), "open: "), err)
	require.NotContains(t, err.Error(), "\n")
	return err.Error()
}

// schemes has a valid URL without parameters for each scheme. Nothing is there.
var schemes = map[string]string{
	"mem":            "mem:",
	"file":           "file:locks",
	"sqlite":         "sqlite:locks.db",
	"postgres":       "postgres://localhost/db",
	"mysql":          "mysql://localhost/db",
	"redis":          "redis://localhost/0",
	"rediss":         "rediss://localhost",
	"redis+sentinel": "redis+sentinel://localhost",
	"redis+cluster":  "redis+cluster://localhost",
	"zk":             "zk://localhost/app",
	"etcd":           "etcd://localhost",
	"consul":         "consul://localhost",
	"nats":           "nats://localhost/locks",
	"s3":             "s3://bucket",
	"gs":             "gs://bucket",
	"dynamodb":       "dynamodb://localhost",
	"kubernetes":     "kubernetes:shop",
}

func TestAnUnknownParameterIsRefusedWithKnownOnes(t *testing.T) {
	for scheme, url := range schemes {
		text := refused(t, url+"?colour=red")
		require.Contains(t, text, `"colour"`)
		_, known, _ := strings.Cut(text, "Known are ")
		require.Contains(t, strings.Split(known, ", "), "kind", scheme)
	}
	require.Contains(t, refused(t, "etcd://h?colour=red"), "Known are cacert, cert, key, kind, label, prefix, tls, ttl")
}

func TestAnUnknownSchemeIsRefusedWithKnownOnes(t *testing.T) {
	for _, url := range []string{"", "vault://localhost", "/run/lock", "://"} {
		text := refused(t, url)
		for scheme := range schemes {
			require.Contains(t, text, scheme+":")
		}
	}
}

func TestANumberAloneIsSeconds(t *testing.T) {
	for parameters, says := range map[string]string{
		"zk://h?ttl=7200":           "2h0m0s",
		"zk://h?ttl=0.0001":         "100µs",
		"zk://h?ttl=2h":             "2h0m0s",
		"redis://h?ttl=0":           "a duration above 0",
		"redis://h?ttl=-30":         "a duration above 0",
		"redis://h?ttl=1h30":        "a duration above 0",
		"consul://h?lockdelay=120":  "2m0s",
		"consul://h?lockdelay=1.5.": "a duration, such as 15s or 15",
	} {
		require.Contains(t, refused(t, parameters), says, parameters)
	}
}

func TestABadValuesErrorNamesParameterAndChoices(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no certificate"), 0o600))
	for _, c := range []struct{ url, parameter, allowed string }{
		{"redis://h?ttl=fast", "ttl", "a duration above 0, such as 30s"},
		{"redis://h?ttl=-1s", "ttl", "a duration above 0"},
		{"redis://h?ttl=", "ttl", "no value"},
		{"redis://h?ttl=1s&ttl=2s", "ttl", "twice"},
		{"redis://h?label=a%0Ab", "label", "control character"},
		{"redis://h?label=%zz", "label", "hexadecimal digits"},
		{"redis://h?kind=fancy", "kind", "one of plain, fenced, fair, simple"},
		{"sqlite:x?kind=advisory", "kind", "one of table, queue"},
		{"file:x?perm=0x1", "perm", "octal number"},
		{"file:x?perm=7777", "perm", "octal number"},
		{"postgres://h/d?listen=1", "listen", "one of true, false"},
		{"mysql://h/d?create=no", "create", "one of true, false"},
		{"mysql://h/d?tls=maybe", "tls", "one of false, true, skip-verify, preferred"},
		{"mysql://h/d?table=a;b", "identifier", "letters"},
		{"etcd://h?cacert=x", "cacert", "need TLS"},
		{"etcd://h?tls=true&cert=x", "cert and key", "need each other"},
		{"rediss://h?cacert=/no/such", "cacert", "a file"},
		{"rediss://h?cacert=" + text, "cacert", "certificates in PEM format"},
		{"rediss://h?cert=" + text + "&key=" + text, "cert and key", "files in PEM format"},
		{"redis+sentinel://h", "master", "missing"},
		{"consul://h?lockdelay=long", "lockdelay", "a duration, such as 15s"},
		{"consul://h?lockdelay=2m", "lock delay", "from 0 to 1m0s"},
		{"consul://h?cacert=x", "cacert", "need TLS"},
		{"nats://h/b?replicas=2", "replicas", "one of none, 1, 3, 5"},
		{"nats://h/b?cacert=x", "cacert", "need TLS"},
		{"s3://b?endpoint=h:9000", "endpoint", "a URL, such as https://HOST:PORT"},
		{"s3://b?endpoint=http://h:9000&cacert=x", "cacert", "need TLS"},
		{"s3://b?probe=maybe", "probe", "one of true, false"},
		{"gs://b?endpoint=h:9000", "endpoint", "a URL, such as https://HOST:PORT"},
		{"gs://b?endpoint=http://h:9000&cacert=x", "cacert", "need TLS"},
		{"dynamodb://eu-west-1/t?tls=true", "region and tls", "a host that is no region"},
		{"dynamodb://h?create=yes", "create", "one of false, true"},
		{"dynamodb://h?partition_key=lock", "partition key", "cannot be called"},
		{"dynamodb://host-a-1:8000?tls=true&partition_key=lock", "partition key", "cannot be called"},
		{"dynamodb://k:s@host-a-1?tls=true&partition_key=lock", "partition key", "cannot be called"},
		{"zk://h?ttl=1us", "session timeout", "1ms to 1h"},
		{"postgres://h/d?sslmode=bogus", "sslmode", "invalid"},
	} {
		require.Regexp(t, `(?s)`+c.parameter+`.*`+c.allowed, refused(t, c.url), c.url)
	}
}

func TestAnAddressThatCannotBeIsRefused(t *testing.T) {
	for url, why := range map[string]string{
		"mem:x":                   "the form is mem:",
		"redis":                   "the form is redis://",
		"mem://host":              "names a host",
		"file:":                   "the form is file:DIRECTORY",
		"file://host/x":           "names a host",
		"file:a%00b":              "NUL",
		"file:%zz":                "hexadecimal",
		"sqlite:":                 "the form is sqlite:FILE",
		"redis:localhost:6379":    "the form is redis://",
		"redis://h:port":          "a port must be a number",
		"redis://h:0":             "a port must be a number",
		"redis://h:65536":         "a port must be a number",
		"redis://a b":             "a host must be a name",
		"redis://::1":             "a host must be a name",
		"redis://[::1":            "an address of IPv6",
		"redis://[x]":             "an address of IPv6",
		"redis://h/first":         "number of a database",
		"redis://h/0/1":           "number of a database",
		"redis://a,b":             "several hosts",
		"redis://h#":              "%23",
		"redis://h\n":             "control character",
		"redis://u:%zz@h":         "hexadecimal",
		"redis+cluster://h/1":     "no numbered databases",
		"etcd://h/path":           "prefix",
		"etcd://user@h":           "a user and a password",
		"consul://a,b":            "several hosts",
		"consul://user:token@h":   "tokens and no users",
		"consul://h/a//b":         "prefix",
		"nats://h":                "the name of a bucket",
		"nats://h/a/b":            "the name of a bucket",
		"nats://user@h/b":         "a user and a password",
		"dynamodb://user@h/t":     "the id of a key and its secret",
		"zk://h/a//b":             "namespace",
		"mysql://a,b/db":          "several hosts",
		"redis://h/0?label=me@ab": "%40",
		"s3://":                   "the form is s3://",
		"s3://bucket:9000":        "the form is s3://",
		"s3://key@bucket":         "an access key and its secret need each other",
		"s3://b/a//b?region=r":    "between the slashes",
		"s3://bucket":             "region",
		"gs://":                   "the form is gs://",
		"gs://bucket:9000":        "the form is gs://",
		"gs://user@bucket":        "it has no user",
	} {
		require.Contains(t, refused(t, url), why, url)
	}
}

// No error may contain secret. The other texts are the same in other spellings.
const secret = "ge/h@e?i m#7&x%"

var spellings = []string{secret, url.QueryEscape(secret), url.PathEscape(secret), "ge/h", "e?i", "geheim", "e%3Fi"}

// reveals fails the test if any error in the tree of err contains a spelling of the secret.
func reveals(t *testing.T, err error, url string) {
	t.Helper()
	require.Error(t, err, url)
	for _, form := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		for _, s := range spellings {
			require.NotContains(t, form, s, url)
		}
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			reveals(t, e, url)
		}
	} else if next := errors.Unwrap(err); next != nil {
		reveals(t, next, url)
	}
}

// Wherever a password is, and however it is written, the URL is refused or nothing answers.
func TestNoErrorContainsAPasswordOrAUser(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the URLs that are right end here
	for _, password := range []string{"geheim", url.QueryEscape(secret), url.PathEscape(secret), secret} {
		for scheme, valid := range schemes {
			for _, form := range []string{
				"%s://user:PW@localhost", "%s://user:PW@localhost:port", "%s://PW@localhost", "%s://PW:PW@localhost/PW",
				"%s://user:PW", "%s://:PW", "%s:PW@localhost", "%s:user:PW@tcp(localhost:1)/db",
				"%s://user:PW@local host",
				"%s://user:PW@localhost:1#", "%s://user:PW@localhost?PW", "%s://user:PW@localhost?PW=1&ttl=1",
				"%s://localhost?password=PW", "%s://localhost?password=PW&PW=1", "%s://localhost?user=PW&PW=1",
				"%s://localhost?password=PW&ttl=fast", "%s://localhost?PW", "%s://localhost?ttl=PW",
				"%s://localhost?sslmode=PW", "%s://localhost?port=PW&password=PW", "%s://user:PW@localhost?kind=PW",
				"%s://localhost?passwrd=PW", "%s://localhost?pass=PW", "%s://localhost?sentinel_password=PW",
				"%s://localhost?master=x&sentinel_user=PW&ttl=x", "%s://user:PW@localhost?tls=PW",
				"%s://user:PW@h?perm=PW", "%s://user:user-PW@h/user-PW?ttl=x",
				"%s://localhost?auth=user:PW", "%s://user:PW@localhost?connect_timeout=PW", "%s://u:%%PW@localhost",
			} {
				if (scheme == "file" || scheme == "sqlite") && !strings.HasPrefix(form, "%s://") {
					continue // a path
				}
				text := strings.ReplaceAll(fmt.Sprintf(form, scheme), "PW", password)
				_, err := open.URL(ctx, text)
				reveals(t, err, text)
			}
			_, err := open.URL(ctx, valid+"?"+password)
			reveals(t, err, valid+password)
		}
		for _, text := range []string{
			"PW", "PW://localhost", ":PW@localhost", "user:PW@localhost", "//user:PW@localhost",
		} {
			text = strings.ReplaceAll(text, "PW", password)
			_, err := open.URL(ctx, text)
			reveals(t, err, text)
		}
	}
}

func TestANegativeTTLIsRefused(t *testing.T) {
	_, err := open.URL(t.Context(), "redis://h?ttl=10s", open.WithTTL(-1))
	require.ErrorIs(t, err, open.ErrURL)
	require.ErrorContains(t, err, "WithTTL(-1ns)")
}

func TestAContextThatHasEndedIsTheError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no more")
	cancel(why)
	for scheme, url := range schemes {
		if scheme == "redis+sentinel" {
			url += "?master=it"
		}
		_, err := open.URL(ctx, url)
		require.ErrorIs(t, err, context.Canceled, url)
		require.ErrorIs(t, err, why, url)
		require.NotErrorIs(t, err, open.ErrURL, url)
	}
	_, err := open.URL(nil, "mem:") //nolint:staticcheck // what is tested
	require.ErrorIs(t, err, locks.ErrNilContext)
}
