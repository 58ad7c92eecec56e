package feed

import "context"

// reached is how far the cluster is known to have come.
type reached struct {
	// versions are by kind. Of what was asked about, asked is how many questions
	// there were, and answered the number of the last one that has its answer.
	versions        [kindCount]uint64
	asked, answered [kindCount]uint64
	// turn has room for one question.
	turn chan struct{}
}

// plausible says whether the cluster has been where a viewer is. Another replica
// may have shown it more than this one has seen yet, but a cluster that was put
// back to what it was has made up versions that say nothing.
func (f *Feed) plausible(ctx context.Context, at Position) bool {
	for kind := range kindCount {
		if !f.hasReached(ctx, kind, at[kind].Version) {
			return false
		}
	}
	return true
}

// hasReached asks the cluster if need be: one question at a time, and those who
// wait share the next one. Ids can be made up, by as many as like.
func (f *Feed) hasReached(ctx context.Context, kind Index, version uint64) bool {
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
