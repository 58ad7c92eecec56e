package ticket

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"hangar.io/glidepath/internal/seal"
)

// reloadEvery is how soon changed keys are in force.
const reloadEvery = 10 * time.Second

// Sealer seals and opens tickets with the keys of a file: the first seals, all
// of them open. It is safe for concurrent use.
type Sealer struct {
	file string
	keys atomic.Pointer[keys]
}

type keys struct {
	read   seal.Keys
	sealer *seal.Sealer
}

// NewSealer reads the keys once; Run keeps them current.
func NewSealer(file string) (*Sealer, error) {
	s := &Sealer{file: file}
	k, err := load(file)
	if err != nil {
		return nil, err
	}
	s.keys.Store(k)
	return s, nil
}

func load(file string) (*keys, error) {
	read, err := seal.LoadKeys(file)
	if err != nil {
		return nil, err
	}
	sealer, err := seal.New(read, "renewal")
	if err != nil {
		return nil, err
	}
	return &keys{read: read, sealer: sealer}, nil
}

func (s *Sealer) current() *seal.Sealer { return s.keys.Load().sealer }

// Run reads the keys again now and then until ctx ends. A file that cannot be
// used changes nothing and is logged.
func (s *Sealer) Run(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.reload(ctx)
		}
	}
}

func (s *Sealer) reload(ctx context.Context) {
	next, err := load(s.file)
	switch {
	case err != nil:
		slog.ErrorContext(ctx, "renewal keys not reloaded, the last ones stay", "error", err)
	case !next.read.Equal(s.keys.Load().read):
		s.keys.Store(next)
		slog.InfoContext(ctx, "renewal keys reloaded")
	}
}
