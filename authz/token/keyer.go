package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"
)

// Key stands for a token in memory.
type Key [sha256.Size]byte

// Keyer makes the keys of tokens with a secret of its own: what lies in caches
// can be neither used as a token nor compared with guesses. It is safe for
// concurrent use.
type Keyer struct {
	macs sync.Pool
}

// mac is a hash with the buffers it works in.
type mac struct {
	hash.Hash
	in, out []byte
}

// NewKeyer gives a Keyer whose keys no other one makes.
func NewKeyer() *Keyer {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: it ends the process instead
	k := new(Keyer)
	k.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }
	return k
}

// Key gives the key of a token.
func (k *Keyer) Key(t Token) Key {
	m := k.macs.Get().(*mac) // the pool holds nothing else
	m.Reset()
	m.in = append(m.in[:0], t.Secret()...)
	m.Write(m.in)
	clear(m.in)
	m.out = m.Sum(m.out[:0])
	key := Key(m.out)
	k.macs.Put(m)
	return key
}
