package seal

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// maxKeyFile bounds what is read: a few dozen keys.
const maxKeyFile = 4 << 10

// Keys are the keys of one service. The first one seals, all of them open, so
// that a key can be replaced while what it sealed is still about. The value
// prints as a placeholder.
type Keys struct {
	keys [][]byte
}

// NewKeys takes at least one key of KeySize bytes each.
func NewKeys(keys ...[]byte) (Keys, error) {
	if len(keys) == 0 {
		return Keys{}, errors.New("no seal key")
	}
	k := Keys{keys: make([][]byte, 0, len(keys))}
	for i, key := range keys {
		if len(key) != KeySize {
			return Keys{}, fmt.Errorf("seal key %d has %d bytes, not %d", i+1, len(key), KeySize)
		}
		k.keys = append(k.keys, bytes.Clone(key))
	}
	return k, nil
}

// LoadKeys reads a file with a key in each line, as standard base64. Empty
// lines do not count.
func LoadKeys(file string) (Keys, error) {
	f, err := os.Open(file)
	if err != nil {
		return Keys{}, fmt.Errorf("reading the seal keys: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return Keys{}, fmt.Errorf("reading the seal keys: %w", err)
	}
	if len(raw) > maxKeyFile {
		return Keys{}, fmt.Errorf("reading the seal keys: %s is larger than %d bytes", file, maxKeyFile)
	}
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil {
			// The decoder's error says where in the key it stopped.
			return Keys{}, fmt.Errorf("reading the seal keys: %s: line %d is not base64", file, n)
		}
		keys = append(keys, key)
	}
	k, err := NewKeys(keys...)
	if err != nil {
		return Keys{}, fmt.Errorf("reading the seal keys: %s: %w", file, err)
	}
	return k, nil
}

// GenerateKeyFile writes a file with one new key, readable by its owner alone.
func GenerateKeyFile(file string) error {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	line := base64.StdEncoding.EncodeToString(key) + "\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		return fmt.Errorf("writing a seal key: %w", err)
	}
	return nil
}

// Equal says whether both are the same keys in the same order.
func (k Keys) Equal(o Keys) bool {
	return slices.EqualFunc(k.keys, o.keys, func(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 })
}

// String keeps keys out of logs.
func (Keys) String() string { return "[seal keys]" }

// GoString keeps keys out of logs.
func (Keys) GoString() string { return "[seal keys]" }
