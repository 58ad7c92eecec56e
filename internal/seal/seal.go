package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrOpen is why something did not open: changed, cut, sealed by another key,
// for another purpose, or for another place. Which of them is not told.
var ErrOpen = errors.New("it does not open")

const (
	nonceSize = 12
	tagSize   = 16
	// Overhead is how much longer a sealed value is.
	Overhead = nonceSize + tagSize
)

// Sealer seals and opens for one purpose, with AES-256-GCM and keys derived
// from the service's keys and the purpose. It is safe for concurrent use.
//
// Nonces are random or derived, 96 bits long: one key should seal no more than
// 2^32 values. A service that seals a hundred values a second reaches that
// after more than a year; give it a new key before.
type Sealer struct {
	keys []sealKey
}

type sealKey struct {
	aead  cipher.AEAD
	nonce []byte // key of the derived nonces
}

// New gives the sealer of a purpose. What one purpose seals, another does not
// open.
func New(keys Keys, purpose string) (*Sealer, error) {
	if len(keys.keys) == 0 || purpose == "" {
		return nil, errors.New("sealing needs a key and a purpose")
	}
	s := &Sealer{keys: make([]sealKey, 0, len(keys.keys))}
	for _, key := range keys.keys {
		k, err := derive(key, purpose)
		if err != nil {
			return nil, fmt.Errorf("deriving the seal key of %s: %w", purpose, err)
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

func derive(key []byte, purpose string) (sealKey, error) {
	secret, err := hkdf.Key(sha256.New, key, nil, "glidepath seal "+purpose, 2*KeySize)
	if err != nil {
		return sealKey{}, err
	}
	block, err := aes.NewCipher(secret[:KeySize])
	if err != nil {
		return sealKey{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return sealKey{}, err
	}
	return sealKey{aead: aead, nonce: secret[KeySize:]}, nil
}

// Seal appends the sealed form of plain to dst. place says where the sealed
// form belongs; only there it opens. Sealing twice gives two forms.
func (s *Sealer) Seal(dst, plain []byte, place string) []byte {
	var nonce [nonceSize]byte
	rand.Read(nonce[:]) // never fails
	return s.keys[0].seal(dst, plain, place, nonce)
}

// SealSame is Seal, but the same plain and place give the same form, which
// shows that they are the same and nothing else.
func (s *Sealer) SealSame(dst, plain []byte, place string) []byte {
	mac := hmac.New(sha256.New, s.keys[0].nonce)
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(place)))
	mac.Write(length[:])
	mac.Write([]byte(place))
	mac.Write(plain)
	return s.keys[0].seal(dst, plain, place, [nonceSize]byte(mac.Sum(nil)))
}

func (k sealKey) seal(dst, plain []byte, place string, nonce [nonceSize]byte) []byte {
	dst = append(dst, nonce[:]...)
	return k.aead.Seal(dst, nonce[:], plain, []byte(place))
}

// Open appends what was sealed for this place to dst, or gives ErrOpen.
func (s *Sealer) Open(dst, sealed []byte, place string) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, ErrOpen
	}
	nonce, box := sealed[:nonceSize], sealed[nonceSize:]
	for _, k := range s.keys {
		if plain, err := k.aead.Open(dst, nonce, box, []byte(place)); err == nil {
			return plain, nil
		}
	}
	return nil, ErrOpen
}
