package gcslock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jucgo/locks/distributed/caslock"
)

// documents are objects of a bucket. The version is the generation: a number that Google gives to
// each write of an object, and never again to an object of that name.
type documents struct {
	client   *http.Client
	endpoint string
	bucket   string
	prefix   string
}

var (
	_ caslock.Documents   = (*documents)(nil)
	_ caslock.Lister      = (*documents)(nil)
	_ caslock.Deleter     = (*documents)(nil)
	_ caslock.NameChecker = (*documents)(nil)
)

const (
	// suffix ends the names of all objects of locks. Other objects below the prefix do not belong
	// to locks.
	suffix = ".json"
	// maxKey is how many bytes the name of an object may have.
	maxKey = 1024
)

func (d *documents) key(name string) string { return d.prefix + name + suffix }

// CheckName is part of [caslock.NameChecker].
func (d *documents) CheckName(name string) error {
	key := d.key(name)
	switch {
	case len(key) > maxKey:
		return fmt.Errorf("its object's name has %d bytes, at most %d are allowed", len(key), maxKey)
	case !utf8.ValidString(key):
		return errors.New("an object's name must be valid UTF-8")
	case strings.ContainsFunc(key, unicode.IsControl):
		return errors.New("an object's name must have no control characters")
	case strings.HasPrefix(key, ".well-known/acme-challenge/"):
		return errors.New("names that begin with .well-known/acme-challenge/ are reserved")
	}
	for part := range strings.SplitSeq(d.prefix+name, "/") {
		if part == "" || part == "." || part == ".." { // tools take them for folders
			return errors.New(`what is between the slashes of an object's name must not be empty, "." or ".."`)
		}
	}
	return nil
}

// Load reads the object.
func (d *documents) Load(ctx context.Context, name string) ([]byte, string, error) {
	a, err := d.send(ctx, request{
		method: http.MethodGet, path: d.object(name), query: url.Values{"alt": {"media"}}, limit: caslock.MaxData + 1,
		right: "storage.objects.get or storage.objects.list",
	})
	if statusOf(err) == http.StatusNotFound && !errors.Is(err, errNoBucket) {
		return nil, "", nil
	} else if err != nil {
		return nil, "", err
	}
	return a.body, a.header.Get("X-Goog-Generation"), nil
}

// Swap writes the object if it has the wanted generation. Generation 0 stands for a missing object.
func (d *documents) Swap(ctx context.Context, name string, data []byte, version string) (string, error) {
	a, err := d.send(ctx, request{
		method: http.MethodPost, path: "/upload" + d.objects(), data: data,
		query: url.Values{
			"uploadType": {"media"}, "name": {d.key(name)}, "ifGenerationMatch": {cmp.Or(version, "0")},
		},
		right: "storage.objects.create or storage.objects.delete",
	})
	if isStored(err) { // another generation, or another write under way
		return "", caslock.ErrConflict
	}
	var object struct{ Generation string }
	if err == nil {
		err = json.Unmarshal(a.body, &object)
	}
	return object.Generation, err
}

// Delete is part of [caslock.Deleter].
func (d *documents) Delete(ctx context.Context, name, version string) error {
	_, err := d.send(ctx, request{
		method: http.MethodDelete, path: d.object(name),
		// With the first parameter alone, a bucket that keeps versions may delete an old version.
		// With the second parameter alone, it keeps the deleted version.
		query: url.Values{"generation": {version}, "ifGenerationMatch": {version}},
		right: "storage.objects.delete",
	})
	if isStored(err) || statusOf(err) == http.StatusNotFound {
		return caslock.ErrConflict
	}
	return err
}

// Names is part of [caslock.Lister].
func (d *documents) Names(ctx context.Context) (names []string, err error) {
	query := url.Values{"prefix": {d.prefix}, "maxResults": {"1000"}, "fields": {"items(name),nextPageToken"}}
	for {
		a, err := d.send(ctx, request{
			method: http.MethodGet, path: d.objects(), query: query, right: "storage.objects.list",
		})
		var page struct {
			Items         []struct{ Name string }
			NextPageToken string
		}
		if err == nil {
			err = json.Unmarshal(a.body, &page)
		}
		if err != nil {
			return names, err
		}
		for _, o := range page.Items {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(o.Name, d.prefix), suffix); ok {
				names = append(names, name)
			}
		}
		if page.NextPageToken == "" {
			return names, nil
		}
		query.Set("pageToken", page.NextPageToken)
	}
}

func (d *documents) objects() string { return "/storage/v1/b/" + url.PathEscape(d.bucket) + "/o" }

func (d *documents) object(name string) string {
	return d.objects() + "/" + url.PathEscape(d.key(name))
}
