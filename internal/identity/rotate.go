package identity

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Overlap is how long the public half of a new signing key must have been in
// force before the key signs. Backends read their folders every ten seconds, so
// those that mount the same files know the key by then.
const Overlap = 30 * time.Second

// RotatingConfig says where the keys are.
type RotatingConfig struct {
	// PrivateKey is a PKCS #8 PEM file.
	PrivateKey string
	// KeysDir is the folder of public keys, as backends have it.
	KeysDir string
}

// RotatingSigner is a Signer that follows the file of its key. It is safe for
// concurrent use.
type RotatingSigner struct {
	cfg     RotatingConfig
	current atomic.Pointer[Signer]
	pending atomic.Bool

	// Of Run alone: since when each public key has been in the folder, and what
	// was said last of a key that is not in force.
	since map[string]time.Time
	said  string
}

// NewRotatingSigner reads the key once; Run follows it. The folder must hold
// its public half: every backend would refuse what it signs otherwise.
func NewRotatingSigner(cfg RotatingConfig) (*RotatingSigner, error) {
	s, err := LoadSigner(cfg.PrivateKey)
	if err != nil {
		return nil, err
	}
	public, err := readPublicKeys(cfg.KeysDir)
	if err != nil {
		return nil, fmt.Errorf("loading the identity key: %w", err)
	}
	if _, ok := public[s.kid]; !ok {
		return nil, fmt.Errorf("%s does not hold the public key of %s", cfg.KeysDir, cfg.PrivateKey)
	}
	r := &RotatingSigner{cfg: cfg, since: map[string]time.Time{}}
	r.current.Store(s)
	r.note(public, time.Now())
	return r, nil
}

// Sign gives the token of c, signed with the key in force; see Signer.
func (r *RotatingSigner) Sign(c Claims) (string, error) { return r.current.Load().Sign(c) }

// KeyID names the key in force.
func (r *RotatingSigner) KeyID() string { return r.current.Load().kid }

// Pending says whether the file holds a key that is not in force: its public
// half is missing or too new, or the file cannot be read.
func (r *RotatingSigner) Pending() bool { return r.pending.Load() }

// Run follows the files until ctx ends. What cannot be read changes nothing and
// is said.
func (r *RotatingSigner) Run(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := r.reload(ctx, time.Now())
			r.pending.Store(err != nil)
			r.say(ctx, err)
		}
	}
}

// say writes what keeps a key from being in force when that changes.
func (r *RotatingSigner) say(ctx context.Context, err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now != r.said && err != nil {
		slog.WarnContext(ctx, "the identity key in the file is not in force, the last one signs", "error", err)
	}
	r.said = now
}

var errTooNew = errors.New("its public key is too new for every backend to know it; it is taken soon")

// reload takes the key of the file into force when it may sign. The error says
// why it does not.
func (r *RotatingSigner) reload(ctx context.Context, now time.Time) error {
	next, err := LoadSigner(r.cfg.PrivateKey)
	if err != nil {
		return err
	}
	public, err := readPublicKeys(r.cfg.KeysDir)
	if err != nil {
		return err
	}
	r.note(public, now)
	old := r.current.Load()
	_, known := public[next.kid]
	_, oldKnown := public[old.kid]
	switch {
	case !known:
		return fmt.Errorf("%s does not hold its public key", r.cfg.KeysDir)
	case next.kid == old.kid:
		return nil
	case oldKnown && now.Sub(r.since[next.kid]) < Overlap:
		return errTooNew
	}
	// Without its public half the old key has to go at once: backends refuse it.
	r.current.Store(next)
	slog.InfoContext(ctx, "another identity key signs from now on", "key", next.kid, "before", old.kid)
	return nil
}

// note keeps since when each public key has been there.
func (r *RotatingSigner) note(public map[string]ed25519.PublicKey, now time.Time) {
	since := make(map[string]time.Time, len(public))
	for kid := range public {
		since[kid] = now
		if t, ok := r.since[kid]; ok {
			since[kid] = t
		}
	}
	r.since = since
}
