package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/seal"
)

// How long what was read of the archive is answered, from when it was read. A
// finished run never changes once it is settled, and a list gets new ones.
const (
	runAge  = 7 * 24 * time.Hour
	listAge = time.Minute
	logAge  = time.Hour
)

// maxReads bounds the documents that are read or waited for at once. eachReads is how
// many of them one namespace's are read, whose callers may have left.
const (
	maxReads  = 256
	eachReads = 32
)

// document is a whole body, which every caller of the same gets.
type document = answer.Stored

// kind says what a document is.
type kind struct {
	contentType string
	maxBytes    int64 // of the body itself; a larger one is none
	passed      bool  // in place of a larger one it is kept that there is one
}

// What is answered with: lists and runs, and the text of logs.
var (
	jsonBody = kind{contentType: answer.JSON, maxBytes: 512 << 20}
	logBody  = kind{contentType: "text/plain; charset=utf-8", maxBytes: 8 << 20, passed: true}
)

// tooLarge stands for a document that is too large to be kept.
var tooLarge = kind{contentType: "application/x-glidepath-too-large"}

// place is where a document is kept.
type place struct {
	kind

	of, key string // the scope's key, and with it its own
	part    bool   // it is read as a part of what has a turn
}

// runPlace is where a finished run is.
func runPlace(scope calls.Scope, result string) place {
	return place{kind: jsonBody, of: scope.Key(), key: "run:" + scope.Key() + ":" + result}
}

// listPlace is where a list of runs is. That of the fleet is another one once an app
// was made again.
func listPlace(q query) place {
	of := q.scope.Key()
	if q.census != nil {
		of += "-" + q.census.apps
	}
	return place{kind: jsonBody, of: q.scope.Key(), key: fmt.Sprintf("list:%s:%d:%d:%t:%t", of, q.hours, q.limit, q.full, q.placed)}
}

// logPlace is where the log of a TaskRun is. Names have no colons.
func logPlace(l logName) place {
	return place{kind: logBody, of: l.scope.Key(), key: "log:" + l.scope.Key() + ":" + l.result + ":" + l.taskRun}
}

// explainPlace is where the explanation of a run is.
func explainPlace(scope calls.Scope, result string) place {
	return place{kind: jsonBody, of: scope.Key(), key: "explain:" + scope.Key() + ":" + result}
}

// documents keeps bodies as they are served, compressed. It is safe for
// concurrent use.
type documents struct {
	cache   *cache.Cache[*document]
	reads   *turns
	plains  *answer.Plains
	sending *sending
	unsent  *prometheus.CounterVec
}

func newDocuments(cfg Config, keys seal.Keys, redis *cache.Redis, reg prometheus.Registerer) (*documents, error) {
	plains, err := answer.NewPlains(cfg.PlainBytes)
	if err != nil {
		return nil, err
	}
	kept, err := cache.New(cache.Config[*document]{
		Name: backend, Codec: answer.Codec{}, Compressed: true, Seal: keys, LocalBytes: cfg.CacheBytes,
		FillTime: cfg.FillTime, ShareTime: cfg.FillTime, // as long as another's may take
		Metrics: reg, Redis: redis,
		Flights: 2 * maxReads, // each with a part
	})
	if err != nil {
		return nil, err
	}
	sending := newSending(cfg.SendBytes)
	return &documents{
		cache: kept, reads: newTurns(maxReads, 0, eachReads), plains: plains,
		sending: sending, unsent: newUnsent(reg, sending),
	}, nil
}

// writer writes a document, bit by bit as what it is about is read. Nobody sees
// of it before all of it is there: what was cut must not look whole. age is for
// how long it is answered from then on; it is given with the error too when w takes
// no more.
type writer func(ctx context.Context, w io.Writer) (age time.Duration, err error)

// get gives the document of a place, written now if it is not there. The writing
// goes on when ctx ends, for those who ask next. That there is none is kept too.
func (d *documents) get(ctx context.Context, at place, write writer) (*document, error) {
	doc, err := d.cache.GetLasting(ctx, at.key, func(ctx context.Context) (doc *document, age time.Duration, err error) {
		if !at.part {
			done, err := d.reads.begin(ctx, at.of, 0)
			if err != nil {
				return nil, 0, err
			}
			defer done()
		}
		doc, err = d.read(at, func(w io.Writer) (err error) {
			age, err = write(ctx, w)
			return err
		})
		if at.passed && errors.Is(err, answer.ErrTooLarge) {
			doc, err = tooLarge.written(func(io.Writer) error { return nil })
		}
		if err != nil && !at.part { // else it would be known for twice as long
			if none, life := refusal(err); none != nil {
				return none, life, nil
			}
		}
		return doc, age, err
	})
	if err != nil {
		return nil, err
	}
	if err := refusalIn(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// read gives the document of a place that is read. Logs are not held by a budget of
// what they are read of, as all else is.
func (d *documents) read(at place, write func(io.Writer) error) (*document, error) {
	if !at.passed {
		return at.written(write)
	}
	doc, end, err := at.held(d.sending, reader, write)
	if err == nil {
		end() // the cache and who sends it count it from now on
	}
	return doc, err
}

// put keeps the document of a place that was come by on the way to others.
func (d *documents) put(ctx context.Context, at place, age time.Duration, write func(io.Writer) error) error {
	doc, err := at.written(write)
	if err != nil {
		return err
	}
	if err := d.cache.Put(ctx, at.key, age, doc); err != nil {
		return fmt.Errorf("keeping a document: %w", err)
	}
	return nil
}

// written gives the document that is written.
func (k kind) written(write func(io.Writer) error) (*document, error) {
	out := answer.NewWriter(k.contentType, k.maxBytes)
	return stored(out, write(out))
}

// held gives the document that is written. It counts among a caller's while it is, and
// until end is called.
func (k kind) held(of *sending, caller string, write func(io.Writer) error) (doc *document, end func(), err error) {
	out := answer.NewWriter(k.contentType, k.maxBytes)
	g := &growing{of: of, caller: caller, out: out}
	if doc, err = stored(out, write(g)); err != nil {
		g.end()
		return nil, nil, err
	}
	return doc, g.end, nil
}

func stored(out *answer.Writer, failed error) (*document, error) {
	if failed != nil {
		return nil, failed
	}
	doc, err := out.Stored()
	if err != nil {
		return nil, fmt.Errorf("writing a document: %w", err)
	}
	return doc, nil
}
