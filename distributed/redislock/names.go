package redislock

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// maxName is how many bytes the name of a lock may have. Every request contains it several times.
const maxName = 4096

// prefixed returns the name of a key or channel of the lock called key, by Redisson's rule. In a
// cluster the returned name and key are in the same slot.
func prefixed(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// suffixed is prefixed for names that begin with the key.
func suffixed(key, suffix string) string {
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
	case cluster && (slot(key) != slot(prefixed("p", key)) || slot(key) != slot(suffixed(key, "s"))):
		err = errors.New("the braces in the name make no hash tag, " +
			"so that in a cluster the lock and its channel would be in different slots")
	default:
		return nil
	}
	return driver.Mark(err, fs.ErrInvalid)
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
