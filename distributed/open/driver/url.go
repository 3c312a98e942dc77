package driver

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// parse reads a URL. Its errors quote nothing but names of known parameters and schemes, because a
// password may be at any place of a URL that is wrong. [net/url.Parse] quotes the URL, and refuses
// several hosts.
func (o *Opening) parse(text string) error {
	name, rest, _ := strings.Cut(text, ":")
	name = strings.ToLower(name)
	if name == "postgresql" {
		name = "postgres"
	}
	var err error
	if o.Scheme, err = find(name); err != nil {
		return err
	}
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			return Reason("it contains a control character, such as the end of a line")
		}
	}
	if strings.Contains(text, "#") {
		return Reason("it contains a #, which is written as %%23")
	}
	place, query, _ := strings.Cut(rest, "?")
	place, atServer := strings.CutPrefix(place, "//")
	authority, path := "", place
	if atServer {
		authority, path, _ = strings.Cut(place, "/")
	}
	if o.Scheme.Port == "" {
		if authority != "" {
			return Reason("it names a host. The form is %s", o.Scheme.Form)
		}
		if path == "" != (o.Scheme.Form == "mem:") {
			return o.formError()
		}
		if atServer {
			path = "/" + path
		}
	} else {
		if !atServer {
			return o.formError()
		}
		if strings.Contains(path+query, "@") {
			return Reason("it contains an @ behind the host, or the password contains one of / ? #. " +
				"These are written as %%40 %%2F %%3F %%23")
		}
		if err := o.parseAuthority(authority); err != nil {
			return err
		}
	}
	if o.Path, err = url.PathUnescape(path); err != nil {
		return Reason("a %% in the path is not followed by two hexadecimal digits")
	}
	if strings.ContainsRune(o.Path, 0) {
		return Reason("the path contains a NUL byte")
	}
	if o.Scheme.Check != nil {
		if err := o.Scheme.Check(o.Path); err != nil {
			return err
		}
	}
	o.describe()
	err = o.parseQuery(query)
	o.describe() // the query may have a password as well
	return err
}

// describe sets About, which may have a password at the wrong place. A user is masked only in the
// texts of drivers. The database postgres of the user postgres stays readable.
func (o *Opening) describe() {
	place := o.Path
	if o.Scheme.Port != "" {
		place = "//" + strings.Join(o.Hosts, ",")
		if o.Path != "" {
			place += "/" + o.Path
		}
	}
	o.About = o.Scheme.Name + ":" + maskAll(place, o.passwords)
}

func (o *Opening) formError() error { return Reason("the form is %s", o.Scheme.Form) }

// parseAuthority reads what is between // and the path.
func (o *Opening) parseAuthority(authority string) error {
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		user, password, _ := strings.Cut(authority[:i], ":")
		o.KeepUser(user)
		o.KeepPassword(password)
		var err error
		if o.User, err = url.PathUnescape(user); err == nil {
			o.Password, err = url.PathUnescape(password)
		}
		if err != nil {
			return Reason("a %% in the user or the password is not followed by two hexadecimal digits")
		}
		o.KeepUser(o.User)
		o.KeepPassword(o.Password)
	}
	list := strings.Split(hosts, ",")
	if len(list) > 1 && !o.Scheme.Many {
		return Reason("it names several hosts. The form is %s", o.Scheme.Form)
	}
	for _, h := range list {
		if o.Scheme.Port == NoPort {
			if !hostName.MatchString(h) {
				return o.formError()
			}
			o.Hosts = append(o.Hosts, h)
			continue
		}
		host, port := h, o.Scheme.Port
		if i := strings.LastIndexByte(h, ':'); i >= 0 && !strings.HasSuffix(h, "]") {
			host, port, o.HasPort = h[:i], h[i+1:], true
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return Reason("a port must be a number from 1 to 65535")
		}
		if in, ok := strings.CutPrefix(host, "["); ok {
			var end bool
			if host, end = strings.CutSuffix(in, "]"); !end || net.ParseIP(host) == nil {
				return Reason("what is in brackets must be an address of IPv6")
			}
		} else if host != "" && !hostName.MatchString(host) {
			return Reason("a host must be a name or an address, and an address of IPv6 be in brackets")
		}
		o.Hosts = append(o.Hosts, net.JoinHostPort(cmp.Or(host, "localhost"), port))
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9.])?$`)

// KeepUser keeps the names of users, which no text of a driver may contain in an error.
func (o *Opening) KeepUser(texts ...string) { o.users = append(o.users, nonEmpty(texts)...) }

// KeepPassword keeps texts that no error may contain.
func (o *Opening) KeepPassword(texts ...string) {
	o.passwords = append(o.passwords, nonEmpty(texts)...)
}

func nonEmpty(texts []string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

func (o *Opening) secrets() []string { return slices.Concat(o.users, o.passwords) }

// parseQuery reads the parameters.
func (o *Opening) parseQuery(query string) error {
	known := slices.Sorted(slices.Values(append([]string{"kind"}, o.Scheme.More...)))
	o.Params = make(map[string]string)
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
			o.KeepPassword(raw, value)
			secret = true
		}
		_, twice := o.Params[name]
		switch {
		case !slices.Contains(known, name):
			what := "an unknown parameter"
			if given && !secret && maskAll(name, o.secrets()) == name && parameterName.MatchString(name) {
				what = fmt.Sprintf("the unknown parameter %q", name)
			}
			return Reason("it has %s. Known are %s", what, strings.Join(known, ", "))
		case err != nil:
			return Reason("a %% in the parameter %s is not followed by two hexadecimal digits", name)
		case twice:
			return Reason("the parameter %s is given twice", name)
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
			return Reason("the parameter %s contains a control character", name)
		case value == "":
			return Reason("the parameter %s has no value", name)
		}
		o.Params[name] = value
	}
	return o.checkCommon()
}

// secretParameters are parameters whose values are in no error.
var secretParameters = []string{"password", "sslpassword", "sentinel_password", "user", "sentinel_user"}

var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,31}$`)

// checkCommon checks the parameters that several schemes have.
func (o *Opening) checkCommon() error {
	if _, err := o.OneOf("kind", o.Scheme.Kinds...); err != nil {
		return err
	}
	if o.TTL < 0 {
		return Reason("WithTTL(%v): a duration above 0 is needed", o.TTL)
	}
	if text, ok := o.Params["ttl"]; ok {
		d, err := Duration(text)
		if err != nil || d <= 0 {
			return Reason("the parameter ttl must be a duration above 0, such as 30s or 30")
		}
		if o.TTL == 0 {
			o.TTL = d
		}
	}
	if o.Label == "" {
		o.Label = o.Params["label"]
	}
	var common []lease.Option
	if o.TTL > 0 {
		common = append(common, lease.WithTTL(o.TTL))
	}
	if o.Label != "" {
		common = append(common, lease.WithLabel(o.Label))
	}
	o.Lease = append(common, o.Lease...)
	return nil
}

// OneOf returns the value of a parameter, the first of allowed if it is not given.
func (o *Opening) OneOf(name string, allowed ...string) (string, error) {
	value, ok := o.Params[name]
	if !ok {
		return allowed[0], nil
	}
	if !slices.Contains(allowed, value) {
		return "", Reason("the parameter %s must be one of %s", name, strings.Join(allowed, ", "))
	}
	return value, nil
}

// Kind returns the kind of lock, which is one of the scheme's.
func (o *Opening) Kind() string { return cmp.Or(o.Params["kind"], o.Scheme.Kinds[0]) }

// Duration returns the duration that a parameter has. A number without a unit means seconds.
func Duration(text string) (time.Duration, error) {
	if strings.Trim(text, "+-.0123456789") == "" {
		text += "s"
	}
	return time.ParseDuration(text)
}
