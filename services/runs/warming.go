package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/services/runs/warm"
)

const (
	// warmLease is how long the warming of a replica that is gone keeps others
	// from it.
	warmLease = 10 * time.Second
	// warmPatience is how long warming lets callers go first, at each app, and how
	// long it waits for a Redis that is away before a replica warms for itself.
	warmPatience = 10 * time.Second
)

// newWarmer gives what reads every app's last days after a start, or nil.
func newWarmer(cfg Config, s *server, redis *cache.Redis, reg prometheus.Registerer) (*warm.Warmer, error) {
	if !cfg.Warm {
		return nil, nil
	}
	w := warm.Config{Apps: s.namespaces.apps, Read: s.warm, Quiet: s.documents.cache.Quiet, Patience: warmPatience, Metrics: reg}
	if redis != nil {
		// Lists are not kept for longer, so neither is the knowledge that they
		// were read.
		lease, err := cache.NewLease(cache.LeaseConfig{Redis: redis, Service: backend, Name: "warm", Life: warmLease, Rest: listAge, Patience: warmPatience})
		if err != nil {
			return nil, err
		}
		w.Lease = lease.Do
	}
	return warm.New(w)
}

// apps lists the namespaces of all apps, in the order of their names.
func (n *namespaces) apps(ctx context.Context) ([]calls.Scope, error) {
	list, err := n.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	var all []calls.Scope
	for _, item := range list.Items {
		if appOf(item.Name) != "" && item.DeletionTimestamp == nil {
			n.remember(string(item.UID), item.CreationTimestamp.Time)
			all = append(all, calls.Scope{Namespace: item.Name, UID: string(item.UID)})
		}
	}
	slices.SortFunc(all, func(a, b calls.Scope) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return all, nil
}

// warm reads what is asked for of an app first: each run of the days that a list
// goes back without parameters, and this list, which is made of the newest of them.
func (s *server) warm(ctx context.Context, app calls.Scope) error {
	q, err := newQuery(app, nil, nil)
	if err != nil {
		return err
	}
	all := q
	all.full, all.limit = true, maxLimit
	ctx, cancel := context.WithTimeout(ctx, cache.MaxFillTime)
	defer cancel()
	held := s.warming.hold()
	defer held.end()
	found, whole, err := s.read(ctx, all, held)
	if errors.Is(err, answer.ErrTooLarge) {
		_, err := s.list(ctx, q) // its runs wait for their callers
		return err
	}
	if err != nil {
		return fmt.Errorf("reading runs: %w", err)
	}
	rows := func(w io.Writer) error { return writeRows(w, found[:min(len(found), q.limit)]) }
	if err := s.documents.put(ctx, listPlace(q), listAge, rows); err != nil {
		return err
	}
	if !whole {
		return nil // nobody knows of which run something is missing
	}
	for i, r := range found {
		if err := s.keep(ctx, app, &r); err != nil {
			return err
		}
		found[i] = listed{} // what is kept need not be held
	}
	return nil
}

// keep keeps a run that is settled, and its outline.
func (s *server) keep(ctx context.Context, app calls.Scope, r *listed) error {
	settles := r.settles()
	if !s.settled(settles) {
		return nil
	}
	write := func(w io.Writer) error { return writeListed(w, *r) }
	if err := s.documents.put(ctx, runPlace(app, r.row.Result), s.age(r.created, settles, runAge), write); err != nil {
		return err
	}
	return s.keepOutline(ctx, app, r)
}
