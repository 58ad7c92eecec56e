package life

import "time"

// Rules are what a life depends on besides the object and the time. The zero Rules know no pipelines and have steps of
// no length.
type Rules struct {
	// Seed of every draw.
	Seed uint64
	// Catalog holds what references lead to.
	Catalog Catalog
	// Pace stretches every length of time that is not written in an object: 1 is the true length, 0 none at all.
	Pace float64
	// DefaultTimeout bounds runs that name none. Zero is Tekton's hour.
	DefaultTimeout time.Duration
}

// Lengths of time at pace 1.
const (
	resolveDelay   = 1 * time.Second // a reference is looked up
	startDelay     = 2 * time.Second // a pod is scheduled, pulls its images and is initialized
	retryDelay     = 1 * time.Second // a failed attempt is seen before the next one begins
	shortestStep   = 2 * time.Second
	longestStep    = 9 * time.Second
	reactionTime   = 1 * time.Second // somebody sees a task run and acts
	pendingTime    = 5 * time.Second // somebody lets a pending run start
	defaultTimeout = time.Hour
)

func (r Rules) paced(d time.Duration) time.Duration {
	return time.Duration(float64(d) * r.Pace)
}

// stepLength is how long a step of this attempt takes.
func (r Rules) stepLength(run *TaskRun, step string) time.Duration {
	attempt := len(run.Status.RetriesStatus)
	spread := r.random(run.Namespace, run.Name, step, string(rune('0'+attempt))).Int64N(int64(longestStep - shortestStep))
	return r.paced(shortestStep + time.Duration(spread))
}

func (r Rules) defaultTimeout() time.Duration {
	if r.DefaultTimeout > 0 {
		return r.DefaultTimeout
	}
	return defaultTimeout
}
