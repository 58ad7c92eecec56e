package runs

import (
	"cmp"
	"slices"
	"time"

	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// settling is how long after its end all of a run is in the archive, when it is
// stored at once: its TaskRuns are stored one by one, and their logs apart.
const settling = 10 * time.Minute

// listedTask is a TaskRun of a run: with its object, or with what is read of it when
// it has failed.
type listedTask struct {
	created, stored time.Time
	name, uid, home string
	outcome         tekton.Outcome
	object          packed
	failure         []byte
}

func newListedTask(object *tekton.Object, rec results.Record) listedTask {
	return listedTask{
		created: rec.Created, stored: rec.Stored, name: object.Metadata.Name, uid: rec.UID, home: rec.Result(), outcome: object.Outcome(),
	}
}

// arrange puts the TaskRuns in the order of their creation. One that is archived
// twice, as it was put into another Result meanwhile, is that which was stored last.
func (r *listed) arrange() {
	slices.SortStableFunc(r.tasks, func(a, b listedTask) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid), b.stored.Compare(a.stored))
	})
	r.tasks = slices.CompactFunc(r.tasks, func(a, b listedTask) bool { return a.uid == b.uid })
}

// settles gives the time from which on what is archived of the run stays as it is,
// zero as long as there is none: every TaskRun that the run names has to be archived,
// and none as one that goes on. A run may be stored long after its end, and its
// TaskRuns after it.
func (r *listed) settles() time.Time {
	if r.row.CompletionTime == nil || !r.namesAll || !r.hasAll() {
		return time.Time{}
	}
	last := *r.row.CompletionTime
	if r.stored.After(last) {
		last = r.stored
	}
	return last.Add(settling)
}

func (r *listed) hasAll() bool {
	there := make(map[string]bool, len(r.tasks))
	for _, t := range r.tasks {
		if t.outcome == tekton.Unfinished {
			return false
		}
		there[t.name] = true
	}
	return !slices.ContainsFunc(r.named, func(name string) bool { return !there[name] })
}

// settled says whether what settles at a time has.
func (s *server) settled(at time.Time) bool { return !at.IsZero() && s.now().After(at) }

// age is for how long something of a run that was created and settles at these times
// is answered: for its own time, or for that of a list as long as the archive may have
// more of the run; never past the time that runs are shown.
func (s *server) age(created, settles time.Time, most time.Duration) time.Duration {
	if !s.settled(settles) {
		most = min(most, listAge)
	}
	return max(time.Second, min(most, s.left(created)))
}
