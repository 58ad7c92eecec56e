package review

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"sync"

	"hangar.io/glidepath/authz/token"
)

// tokenKey stands for a token in memory.
type tokenKey [sha256.Size]byte

// keyer makes the keys of tokens with a secret of this process: what lies in
// the caches can be neither used as a token nor compared with guesses.
type keyer struct {
	macs sync.Pool
}

// mac is a hash with the buffers it works in.
type mac struct {
	hash.Hash
	in, out []byte
}

func newKeyer() *keyer {
	secret := make([]byte, sha256.Size)
	rand.Read(secret) // never fails: it ends the process instead
	k := new(keyer)
	k.macs.New = func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }
	return k
}

func (k *keyer) key(t token.Token) tokenKey {
	m := k.macs.Get().(*mac) // the pool holds nothing else
	m.Reset()
	m.in = append(m.in[:0], t.Secret()...)
	m.Write(m.in)
	clear(m.in)
	m.out = m.Sum(m.out[:0])
	key := tokenKey(m.out)
	k.macs.Put(m)
	return key
}
