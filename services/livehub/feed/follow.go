package feed

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/kubelist"
)

const (
	// watchTime is how long the API server is asked to keep a watch open, and
	// its spread: so that those of many namespaces do not end together.
	watchTime, watchSpread = 5 * time.Minute, 5 * time.Minute
	// dueSlack is how long before its time a watch may end: times are rounded.
	dueSlack = 5 * time.Second
	// beginTime is how long a watch may take to say what there is.
	beginTime = 30 * time.Second
	// firstPause and lastPause bound how long is waited before what failed is
	// tried again. Half of each pause is random: an API server that comes back
	// must not meet everybody at once.
	firstPause, lastPause = 500 * time.Millisecond, 30 * time.Second
)

// follow keeps one kind current until ctx ends, or nothing that was seen holds
// any more.
func (f *Feed) follow(ctx context.Context, kind Kind) error {
	w := watcher{feed: f, kind: kind}
	for failures := 0; ; {
		began := time.Now()
		err := w.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errBackwards):
			return err
		case errors.Is(err, errNoWatch):
			slog.WarnContext(ctx, "the cluster grants no watch: lists are read", "kind", kindNames[kind])
			if err := f.poll(ctx, kind); err != nil {
				return err
			}
			w.at, failures = 0, 0
			continue
		case errors.Is(err, io.EOF) && time.Until(w.due) < dueSlack:
			w.reconcile(ctx)
			failures = 0
			continue
		}
		f.failed(kind, err)
		slog.DebugContext(ctx, "a watch ended", "kind", kindNames[kind], "error", err)
		w.forget(err)
		if time.Since(began) > lastPause {
			failures = 0
		}
		if !pause(ctx, failures) {
			return context.Cause(ctx)
		}
		failures++
	}
}

// pause waits before the next try after so many failures, and says whether ctx
// let it.
func pause(ctx context.Context, failures int) bool {
	d := min(firstPause<<min(failures, 10), lastPause)
	t := time.NewTimer(d/2 + rand.N(d/2)) //nolint:gosec // it spreads load and hides nothing
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// watcher watches one kind.
type watcher struct {
	feed *Feed
	kind Kind
	// at is the version after which the next watch begins; 0 to read everything
	// anew. It is what a list, an event or a bookmark said of the whole kind,
	// never what one object had.
	at uint64
	// lists is set where the API server sends no initial events, or does not say
	// which of its events is the last of them.
	lists bool
	// due is when what is known is compared with the cluster. Watches that the API
	// server ends before, as one does that is itself to end, are no reason: all
	// who watch would ask at once.
	due time.Time
}

// forget has everything read anew if that is why a watch ended.
func (w *watcher) forget(err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsTimeout(err) || errors.Is(err, errAnew) {
		w.at = 0
	}
}

// errAnew says that a watch brought what cannot be: what is known is worth
// nothing until it is read anew.
var errAnew = errors.New("what a watch brought makes no sense")

// errNoWatch says that the cluster grants no watch.
var errNoWatch = errors.New("the cluster grants no watch")

// watch follows one watch to its end, which is io.EOF when the API server ended
// it as it was asked to.
func (w *watcher) watch(ctx context.Context) error {
	if w.at == 0 && w.lists {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	from := kubelist.WatchFrom{InitialEvents: w.at == 0, Timeout: w.untilDue()}
	if w.at > 0 {
		from.ResourceVersion = strconv.FormatUint(w.at, 10)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// An API server that says nothing is one that is away.
	late := time.AfterFunc(beginTime, cancel)
	defer late.Stop()
	one, err := w.feed.cfg.Source.Watch(ctx, w.kind, from)
	switch {
	case apierrors.IsForbidden(err):
		return errNoWatch
	case from.InitialEvents && !w.lists && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)):
		// No failure: nobody who waits for the namespace is to hear of it.
		w.lists = true
		return w.watch(ctx)
	case err != nil:
		return err
	}
	defer one.Close()
	if from.InitialEvents {
		if err := w.begin(one); err != nil {
			w.lists = w.lists || !late.Stop()
			return err
		}
	}
	late.Stop()
	// A watch that is opened and broken, again and again, follows nothing.
	settled := time.AfterFunc(firstPause, func() { w.feed.followed(w.kind) })
	defer settled.Stop()
	for {
		e, err := one.Next()
		if err == nil {
			err = w.take(e)
		}
		if err != nil {
			return err
		}
	}
}

// untilDue gives how long a watch is to last.
func (w *watcher) untilDue() time.Duration {
	if time.Until(w.due) < dueSlack {
		w.due = time.Now().Add(watchTime + rand.N(watchSpread)) //nolint:gosec // it spreads load and hides nothing
	}
	return time.Until(w.due)
}

// list reads all as a list.
func (w *watcher) list(ctx context.Context) error {
	at, err := w.feed.take(ctx, w.kind, w.feed.cfg.Source.Read)
	if err == nil {
		w.at = at
	}
	return err
}

// begin takes what there is, up to the bookmark behind it.
func (w *watcher) begin(one Watch) error {
	var all []entry
	for {
		e, err := one.Next()
		switch {
		case err != nil:
			return err
		case e.Type == watch.Added:
			version, err := parseVersion(e.ResourceVersion)
			if err != nil {
				return err
			}
			all = append(all, entry{name: e.Name, version: version, json: e.JSON})
		case e.Type == watch.Bookmark && e.InitialEventsEnd:
			at, err := parseVersion(e.ResourceVersion)
			if err != nil {
				return err
			}
			w.at = at
			return w.feed.replace(w.kind, all, at)
		}
	}
}

// take takes one event.
func (w *watcher) take(e kubelist.Event) error {
	at, err := parseVersion(e.ResourceVersion)
	if err != nil {
		return errors.Join(errAnew, err)
	}
	switch e.Type {
	case watch.Bookmark:
		w.feed.moved(w.kind, at)
	case watch.Deleted:
		err = w.feed.apply(w.kind, entry{name: e.Name}, at)
	default:
		err = w.feed.apply(w.kind, entry{name: e.Name, version: at, json: e.JSON}, at)
	}
	if err != nil {
		return errors.Join(errAnew, err)
	}
	w.at = at
	w.feed.followed(w.kind)
	return nil
}
