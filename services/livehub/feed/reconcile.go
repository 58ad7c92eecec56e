package feed

import (
	"context"
	"log/slog"
	"strconv"

	"hangar.io/glidepath/internal/kubelist"
)

// reconcile compares what is known with what the cluster holds, by the names and
// versions of the objects, whenever a watch has come to its end: every five to
// ten minutes. A watch tells what the API server's watch cache knows, and such a
// cache has been seen to lose changes for good: what was deleted then stays on
// every screen. Both are as of the same version, so whatever differs was kept
// from us.
//
// What cannot be compared now is compared the next time.
func (w *watcher) reconcile(ctx context.Context) {
	kind, at := w.kind, strconv.FormatUint(w.at, 10)
	names, err := w.feed.cfg.Source.ReadAt(ctx, kind, at, true)
	if err != nil {
		slog.DebugContext(ctx, "a namespace could not be compared with the cluster", "kind", kindNames[kind], "error", err)
		return
	}
	if w.feed.agrees(kind, names) {
		return
	}
	slog.WarnContext(ctx, "the cluster kept changes from a watch: all is read again", "kind", kindNames[kind])
	all, err := w.feed.cfg.Source.ReadAt(ctx, kind, at, false)
	if err == nil {
		var objects []entry
		if objects, err = entries(all); err == nil {
			err = w.feed.replace(kind, objects, w.at)
		}
	}
	if err != nil {
		slog.WarnContext(ctx, "what a watch kept back could not be read", "kind", kindNames[kind], "error", err)
	}
}

// agrees says whether the objects of a kind are known at the listed versions,
// and no others.
func (f *Feed) agrees(kind Kind, names *kubelist.List) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	objects := f.kinds[kind].objects
	if names.Len() != len(objects) {
		return false
	}
	for i := range names.Len() {
		m := names.Meta(i)
		if known, ok := objects[m.Name]; !ok || strconv.FormatUint(known.version, 10) != m.ResourceVersion {
			return false
		}
	}
	return true
}
