package feed

import "context"

// reached is how far the cluster is known to have come.
type reached struct {
	// versions are the latest known, by kind. asked counts the questions that were
	// put to the cluster; answered is the number of the last one answered.
	versions        [kindCount]uint64
	asked, answered [kindCount]uint64
	// turn has room for one question.
	turn chan struct{}
}

// plausible says whether the cluster can have been at a viewer's position. Another
// replica may have shown the viewer more than this one has seen so far. But after
// the cluster is restored from a backup, versions beyond its own mean nothing.
func (f *Feed) plausible(ctx context.Context, at Position) bool {
	for kind := range kindCount {
		if !f.hasReached(ctx, kind, at[kind].Version) {
			return false
		}
	}
	return true
}

// hasReached asks the cluster if need be, one question at a time; all who wait
// share the next answer. Anybody can make up ids, so they must not cost a question
// each.
func (f *Feed) hasReached(ctx context.Context, kind Kind, version uint64) bool {
	f.mu.Lock()
	r := &f.reached
	known, came := max(r.versions[kind], f.kinds[kind].at), r.asked[kind]
	f.mu.Unlock()
	if version <= known {
		return true
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return false
	}
	f.mu.Lock()
	known, told := r.versions[kind], r.answered[kind] > came
	if !told {
		r.asked[kind]++
	}
	question := r.asked[kind]
	f.mu.Unlock()
	if told || version <= known {
		return version <= known
	}
	latest, err := f.cfg.Source.Latest(ctx, kind)
	if err != nil {
		return false
	}
	if known, err = parseVersion(latest); err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r.versions[kind], r.answered[kind] = max(r.versions[kind], known), question
	return version <= known
}
