package cache

import (
	"fmt"

	"github.com/klauspost/compress/s2"

	"hangar.io/glidepath/internal/seal"
)

// schema is in every key. It is raised when what is kept, or how the scripts
// handle it, changes so that two versions must not meet.
const schema = "1"

// Values beyond these sizes are not shared: each replica reads them for itself.
const (
	maxSealed = 64 << 20
	maxPlain  = 512 << 20
)

// vault turns values into what Redis keeps, and back.
type vault[T any] struct {
	prefix string
	codec  Codec[T]
	packed bool // by the codec
	sealer *seal.Sealer
}

func newVault[T any](cfg Config[T]) (*vault[T], error) {
	sealer, err := seal.New(cfg.Seal, "cache "+cfg.Name)
	if err != nil {
		return nil, err
	}
	return &vault[T]{prefix: keyPrefix(cfg.Name), codec: cfg.Codec, packed: cfg.Compressed, sealer: sealer}, nil
}

func keyPrefix(service string) string { return "glidepath:" + schema + ":" + service + ":" }

// key gives the Redis key of a value. The braces keep it and its lock on one
// node of a cluster.
func (v *vault[T]) key(key string) string { return v.prefix + "{" + key + "}" }

// place binds a sealed value to its key and its stamp: moved or with another age
// it does not open.
func (v *vault[T]) place(key, stamp string) string { return v.key(key) + "\x00" + stamp }

func (v *vault[T]) seal(key, stamp string, value T) ([]byte, error) {
	plain, err := v.codec.Encode(value)
	if err != nil {
		return nil, fmt.Errorf("encoding a value: %w", err)
	}
	if len(plain) > maxPlain {
		return nil, fmt.Errorf("%d bytes are too many to share", len(plain))
	}
	packed := plain
	if !v.packed {
		packed = s2.Encode(nil, plain)
	}
	if len(packed) > maxSealed-seal.Overhead {
		return nil, fmt.Errorf("%d bytes are too many to share", len(packed))
	}
	return v.sealer.Seal(make([]byte, 0, len(packed)+seal.Overhead), packed, v.place(key, stamp)), nil
}

func (v *vault[T]) open(key string, f found) (value T, err error) {
	packed, err := v.sealer.Open(nil, f.sealed, v.place(key, f.stamp))
	if err != nil {
		return value, err
	}
	if v.packed {
		return v.codec.Decode(packed)
	}
	if n, err := s2.DecodedLen(packed); err != nil || n > maxPlain {
		return value, fmt.Errorf("unpacking a value of %d bytes: %w", n, err)
	}
	plain, err := s2.Decode(nil, packed)
	if err != nil {
		return value, fmt.Errorf("unpacking a value: %w", err)
	}
	return v.codec.Decode(plain)
}
