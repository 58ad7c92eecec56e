package livehub

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/services/livehub/feed"
)

// resumption is what has viewers go on where they were: the changes that replicas
// share through Redis.
type resumption struct {
	journal *cache.Journal // nil without a Redis
	went    *prometheus.CounterVec
}

func newResumption(keys seal.Keys, redis *cache.Redis, reg prometheus.Registerer) (*resumption, error) {
	r := &resumption{went: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_live_resumes_total",
		Help: "Viewers of live streams that came back, by how they went on: with what this replica keeps, with what was found of the past, or anew for the reason of the reset.",
	}, []string{"by"})}
	for _, by := range feed.Resumptions() {
		r.went.WithLabelValues(by)
	}
	reg.MustRegister(r.went)
	if redis == nil {
		return r, nil
	}
	var err error
	r.journal, err = cache.NewJournal(cache.JournalConfig{Name: backend, Seal: keys, Metrics: reg, Redis: redis})
	return r, err
}

// run shares changes until ctx ends.
func (r *resumption) run(ctx context.Context) {
	if r.journal == nil {
		<-ctx.Done()
		return
	}
	r.journal.Run(ctx)
}

// log gives what replicas share about a namespace, or nil.
func (r *resumption) log(s calls.Scope) feed.Log {
	if r.journal == nil {
		return nil
	}
	return feedLog{journal: r.journal, uid: s.UID}
}

func (r *resumption) resumed(how string) { r.went.WithLabelValues(how).Inc() }

// feedLog keeps the changes of one namespace in the journal. It goes by the
// namespace's UID, so that one that is made again has none.
type feedLog struct {
	journal *cache.Journal
	uid     string
}

func (l feedLog) stream(kind feed.Kind) string { return l.uid + ":" + feedKinds[kind].Resource }

// Append has a change kept.
func (l feedLog) Append(kind feed.Kind, e cache.Entry) { l.journal.Append(l.stream(kind), e) }

// Read gives the changes after a version.
func (l feedLog) Read(ctx context.Context, kind feed.Kind, after uint64) ([]cache.Entry, error) {
	return l.journal.Read(ctx, l.stream(kind), after)
}
