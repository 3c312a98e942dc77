package open

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scheme is a kind of store.
type scheme struct {
	name  string
	form  string   // of the URL, for errors
	port  string   // of hosts without one; "" if the URL has no hosts
	many  bool     // there may be several hosts
	kinds []string // the first one is the default
	more  []string // parameters besides kind
	open  func(ctx context.Context, o *opening) error
}

var (
	leased      = []string{"label", "ttl"}
	certificate = []string{"cacert", "cert", "key"}
	tables      = slices.Concat(leased, []string{"create", "table"})
	onRedis     = slices.Concat(leased, certificate, []string{"prefix"})
	redisKinds  = []string{"plain", "fenced", "fair", "simple"}
	sqlKinds    = []string{"table", "queue", "row", "advisory"}
)

// schemes are all stores. They are not a variable, which would refer to itself.
func schemes() []scheme {
	return []scheme{
		{"mem", "mem:", "", false, []string{"plain", "fair"}, nil, openMemory},
		{"file", "file:DIRECTORY", "", false, []string{"plain", "fenced"}, []string{"perm"}, openFiles},
		{"sqlite", "sqlite:FILE", "", false, sqlKinds[:3], tables, openSQLite},
		{"postgres", "postgres://USER:PASSWORD@HOST:PORT/DATABASE", "5432", true, sqlKinds,
			slices.Concat(tables, []string{"listen"}, ofPostgres), openPostgres},
		{"mysql", "mysql://USER:PASSWORD@HOST:PORT/DATABASE", "3306", false, sqlKinds,
			slices.Concat(tables, certificate, []string{"socket", "tls"}), openMySQL},
		{"redis", "redis://USER:PASSWORD@HOST:PORT/NUMBER", "6379", false, redisKinds,
			slices.Concat(leased, []string{"prefix"}), openRedis},
		{"rediss", "rediss://USER:PASSWORD@HOST:PORT/NUMBER", "6379", false, redisKinds, onRedis, openRedis},
		{"redis+sentinel", "redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NUMBER?master=NAME", "26379", true,
			redisKinds, slices.Concat(onRedis, []string{"master", "sentinel_password", "sentinel_user", "tls"}),
			openRedis},
		{"redis+cluster", "redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT", "6379", true, redisKinds,
			slices.Concat(onRedis, []string{"tls"}), openRedis},
		{"zk", "zk://USER:PASSWORD@HOST:PORT,HOST:PORT/NAMESPACE", "2181", true, []string{"mutex", "semaphore"},
			slices.Concat(leased, certificate, []string{"tls"}), openZooKeeper},
		{"etcd", "etcd://USER:PASSWORD@HOST:PORT,HOST:PORT", "2379", true, []string{"mutex"},
			slices.Concat(onRedis, []string{"tls"}), openEtcd},
	}
}

// secretParameters are parameters whose values are in no error.
var secretParameters = []string{"password", "sslpassword", "sentinel_password", "user", "sentinel_user"}

// opening is a store that is being opened.
type opening struct {
	*Store
	options
	scheme         scheme
	user, password string
	hosts          []string // each "host:port"
	path           string   // of a server: without the slash in front
	params         map[string]string
	secrets        []string
}

// reason is an error that matches [ErrURL].
func reason(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrURL}, args...)...)
}

// fail returns err with what was attempted.
func (o *opening) fail(err error) error {
	if o.scheme.name == "" {
		return fmt.Errorf("open: %w", err)
	}
	return fmt.Errorf("open: %s: %w", cmp.Or(o.about, o.scheme.name), err)
}

// parse reads a URL. Its errors quote nothing but names of known parameters and schemes, because a
// password may be at any place of a URL that is wrong. [net/url.Parse] quotes the URL, and refuses
// several hosts.
func (o *opening) parse(text string) error {
	name, rest, _ := strings.Cut(text, ":")
	name = strings.ToLower(name)
	if name == "postgresql" {
		name = "postgres"
	}
	all := schemes()
	i := slices.IndexFunc(all, func(s scheme) bool { return s.name == name })
	if i < 0 {
		var known []string
		for _, s := range all {
			known = append(known, s.name+":")
		}
		return reason("it must begin with one of %s", strings.Join(known, ", "))
	}
	o.scheme = all[i]
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return reason("it contains a control character")
		}
	}
	if strings.Contains(text, "#") {
		return reason("it contains a #, which is written as %%23")
	}
	place, query, _ := strings.Cut(rest, "?")
	place, atServer := strings.CutPrefix(place, "//")
	authority, path := "", place
	if atServer {
		authority, path, _ = strings.Cut(place, "/")
	}
	if o.scheme.port == "" {
		if authority != "" {
			return reason("it names a host. The form is %s", o.scheme.form)
		}
		if path == "" != (o.scheme.form == "mem:") {
			return o.malformed()
		}
		if atServer {
			path = "/" + path
		}
	} else {
		if !atServer {
			return o.malformed()
		}
		if strings.Contains(path+query, "@") {
			return reason("it contains an @ behind the host, or the password contains one of / ? #. " +
				"These are written as %%40 %%2F %%3F %%23")
		}
		if err := o.parseAuthority(authority); err != nil {
			return err
		}
	}
	var err error
	if o.path, err = url.PathUnescape(path); err != nil {
		return reason("a %% in the path is not followed by two hexadecimal digits")
	}
	if strings.ContainsRune(o.path, 0) {
		return reason("the path contains a NUL byte")
	}
	about := o.scheme.name + ":" + o.path
	if o.scheme.port != "" {
		about = o.scheme.name + "://" + strings.Join(o.hosts, ",")
		if o.path != "" {
			about += "/" + o.path
		}
	}
	o.about = o.masked(about)
	err = o.parseQuery(query)
	o.about = o.masked(about) // the query may have a secret as well
	return err
}

func (o *opening) malformed() error { return reason("the form is %s", o.scheme.form) }

// parseAuthority reads what is between // and the path.
func (o *opening) parseAuthority(authority string) error {
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		user, password, _ := strings.Cut(authority[:i], ":")
		o.keepSecret(user, password)
		var err error
		if o.user, err = url.PathUnescape(user); err == nil {
			o.password, err = url.PathUnescape(password)
		}
		if err != nil {
			return reason("a %% in the user or the password is not followed by two hexadecimal digits")
		}
		o.keepSecret(o.user, o.password)
	}
	list := strings.Split(hosts, ",")
	if len(list) > 1 && !o.scheme.many {
		return reason("it names several hosts. The form is %s", o.scheme.form)
	}
	for _, h := range list {
		host, port := h, o.scheme.port
		if i := strings.LastIndexByte(h, ':'); i >= 0 && !strings.HasSuffix(h, "]") {
			host, port = h[:i], h[i+1:]
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return reason("a port must be a number from 1 to 65535")
		}
		if in, ok := strings.CutPrefix(host, "["); ok {
			var end bool
			if host, end = strings.CutSuffix(in, "]"); !end || net.ParseIP(host) == nil {
				return reason("what is in brackets must be an address of IPv6")
			}
		} else if host != "" && !hostName.MatchString(host) {
			return reason("a host must be a name or an address, and an address of IPv6 be in brackets")
		}
		o.hosts = append(o.hosts, net.JoinHostPort(cmp.Or(host, "localhost"), port))
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// keepSecret keeps texts that no error may contain.
func (o *opening) keepSecret(texts ...string) {
	for _, text := range texts {
		if text != "" {
			o.secrets = append(o.secrets, text)
		}
	}
}

// parseQuery reads the parameters.
func (o *opening) parseQuery(query string) error {
	known := slices.Sorted(slices.Values(append([]string{"kind"}, o.scheme.more...)))
	o.params = make(map[string]string)
	secret := false // what follows may be a part of a secret that contains an &
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		if part == "" {
			continue
		}
		name, raw, given := strings.Cut(part, "=")
		value, err := url.QueryUnescape(raw)
		isSecret := slices.Contains(secretParameters, name)
		if isSecret {
			o.keepSecret(raw, value)
			secret = true
		}
		_, twice := o.params[name]
		switch {
		case !slices.Contains(known, name):
			what := "an unknown parameter"
			if given && !secret && o.masked(name) == name && parameterName.MatchString(name) {
				what = fmt.Sprintf("the unknown parameter %q", name)
			}
			return reason("it has %s. Known are %s", what, strings.Join(known, ", "))
		case err != nil:
			return reason("a %% in the parameter %s is not followed by two hexadecimal digits", name)
		case twice:
			return reason("the parameter %s is given twice", name)
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
			return reason("the parameter %s contains a control character", name)
		case value == "":
			return reason("the parameter %s has no value", name)
		}
		o.params[name] = value
	}
	return o.checkCommon()
}

var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,31}$`)

// checkCommon checks the parameters that several schemes have.
func (o *opening) checkCommon() error {
	if _, err := o.oneOf("kind", o.scheme.kinds...); err != nil {
		return err
	}
	if o.ttl < 0 {
		return reason("WithTTL(%v): a duration above 0 is needed", o.ttl)
	}
	if text, ok := o.params["ttl"]; ok {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return reason("the parameter ttl must be a duration above 0, such as 30s")
		}
		if o.ttl == 0 {
			o.ttl = d
		}
	}
	if o.label == "" {
		o.label = o.params["label"]
	}
	return nil
}

// oneOf returns the value of a parameter, the first one of allowed if it is not given.
func (o *opening) oneOf(name string, allowed ...string) (string, error) {
	value, ok := o.params[name]
	if !ok {
		return allowed[0], nil
	}
	if !slices.Contains(allowed, value) {
		return "", reason("the parameter %s must be one of %s", name, strings.Join(allowed, ", "))
	}
	return value, nil
}

// kind returns the kind of lock, which is one of the scheme's.
func (o *opening) kind() string { return cmp.Or(o.params["kind"], o.scheme.kinds[0]) }
