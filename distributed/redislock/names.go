package redislock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/listing"
)

// maxName is how many bytes the name of a lock may have. Every request contains it several times.
const maxName = 4096

// addPrefix returns the name of a key or channel of the lock called key, by Redisson's rule. In a
// cluster the returned name and key are in the same slot.
func addPrefix(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// addSuffix is addPrefix for names that begin with the key.
func addSuffix(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// checkName returns why key cannot be the name of a lock. In a cluster, all keys and channels of
// the lock must be in key's slot.
func checkName(key string, cluster bool) (err error) {
	switch {
	case key == "":
		err = errors.New("the name is empty")
	case len(key) > maxName:
		err = fmt.Errorf("the name has %d bytes, at most %d are allowed", len(key), maxName)
	case cluster && (slot(key) != slot(addPrefix("p", key)) || slot(key) != slot(addSuffix(key, "s"))):
		err = errors.New("the braces in the name make no hash tag, " +
			"so that in a cluster the lock and its channel would be in different slots")
	default:
		return nil
	}
	return driver.Mark(err, fs.ErrInvalid)
}

// Names returns the names of the held locks that match pattern, sorted. The pattern has the syntax
// of [path.Match], and the empty pattern matches all names. The result includes locks of
// [Client.Mutex], [Client.FencedMutex] and [Client.FairMutex], also the same locks of Redisson. It
// lacks read-write locks and semaphores, and simple locks, which look like any string.
//
// A lock is recognized by its hash with one holder. So Names reads all keys of the database, or of
// each master of a cluster, 500 at a time, until ctx ends. Only keys that begin as pattern does are
// sent, up to the first character of pattern with a special meaning. The user needs the permission
// +scan in addition to the permissions in the package comment. Locks that the user must not read
// are missing.
func (c *Client) Names(ctx context.Context, pattern string) ([]string, error) {
	if ctx == nil {
		return nil, fmt.Errorf("redislock: list names: %w", locks.ErrNilContext)
	}
	names, err := listing.Names(ctx, c.core.p, listing.Query{Pattern: pattern})
	if err != nil {
		return nil, fmt.Errorf("redislock: list names: %w", adapter.OfStore(ctx, err))
	}
	return names, nil
}

// slot returns the slot of key in a cluster.
func slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if n := strings.IndexByte(key[open+1:], '}'); n > 0 {
			key = key[open+1 : open+1+n]
		}
	}
	var crc uint16 // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc & 16383
}
