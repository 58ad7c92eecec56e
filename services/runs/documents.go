package runs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/seal"
)

// How long what was read of the archive may be answered. A finished run never
// changes, and a list gets new ones.
const (
	runAge  = 7 * 24 * time.Hour
	listAge = time.Minute
	logAge  = time.Hour
)

// maxReads bounds the documents that are read or waited for at once.
const maxReads = 256

// document is a whole body, which every caller of the same gets.
type document = answer.Stored

// kind says what a document is.
type kind struct {
	contentType string
	maxBytes    int64 // of the body itself; a larger one is none
}

// What is answered with: lists and runs, and the text of logs.
var (
	jsonBody = kind{answer.JSON, 512 << 20}
	logBody  = kind{"text/plain; charset=utf-8", 64 << 20}
)

// place is where a document is kept, and for how long.
type place struct {
	kind

	key string
	age time.Duration
}

// runPlace is where a finished run is.
func runPlace(scope calls.Scope, result string) place {
	return place{jsonBody, "run:" + scope.Key() + ":" + result, runAge}
}

// listPlace is where a list of runs is.
func listPlace(q query) place {
	return place{jsonBody, fmt.Sprintf("list:%s:%d:%d:%t:%t", q.scope.Key(), q.hours, q.limit, q.full, q.placed), listAge}
}

// logPlace is where the log of a TaskRun is. Names have no colons.
func logPlace(scope calls.Scope, result, taskRun string) place {
	return place{logBody, "log:" + scope.Key() + ":" + result + ":" + taskRun, logAge}
}

// explainPlace is where the explanation of a run is. A log that is not archived
// yet may be a moment later, so it is kept no longer than a list.
func explainPlace(scope calls.Scope, result string) place {
	return place{jsonBody, "explain:" + scope.Key() + ":" + result, listAge}
}

// documents keeps bodies as they are served, compressed. It is safe for
// concurrent use.
type documents struct {
	cache  *cache.Cache[*document]
	plains *answer.Plains
}

func newDocuments(cfg Config, keys seal.Keys, redis *cache.Redis, reg prometheus.Registerer) (*documents, error) {
	plains, err := answer.NewPlains(cfg.PlainBytes)
	if err != nil {
		return nil, err
	}
	kept, err := cache.New(cache.Config[*document]{
		Name: backend, Codec: answer.Codec{}, Compressed: true, Seal: keys, LocalBytes: cfg.CacheBytes,
		FillTime: cfg.FillTime, ShareTime: cfg.FillTime / 2, // the other half is for a read of its own
		Flights: maxReads, Metrics: reg, Redis: redis,
	})
	if err != nil {
		return nil, err
	}
	return &documents{cache: kept, plains: plains}, nil
}

// writer writes a document, bit by bit as what it is about is read. Nobody sees
// any of it before all of it is there: what was cut must not look whole.
type writer func(ctx context.Context, w io.Writer) error

// get gives the document of a place, written now if it is not there. The writing
// goes on when ctx ends, for those who ask next.
func (d *documents) get(ctx context.Context, at place, write writer) (*document, error) {
	return d.cache.Get(ctx, at.key, at.age, func(ctx context.Context) (*document, error) { return at.written(ctx, write) })
}

// put keeps the document of a place that was come by on the way to others.
func (d *documents) put(ctx context.Context, at place, write writer) error {
	doc, err := at.written(ctx, write)
	if err == nil {
		d.cache.Put(ctx, at.key, at.age, doc)
	}
	return err
}

func (at place) written(ctx context.Context, write writer) (*document, error) {
	out := answer.NewWriter(at.contentType, at.maxBytes)
	if err := write(ctx, out); err != nil {
		return nil, err
	}
	doc, err := out.Stored()
	if err != nil {
		return nil, fmt.Errorf("writing a document: %w", err)
	}
	return doc, nil
}
