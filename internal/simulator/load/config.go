package load

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Config says how much there is and how fast it changes.
type Config struct {
	// REST reaches the API server, with the right to make namespaces and runs. Required.
	REST *rest.Config
	// Namespaces is how many apps the load makes, Runs how many PipelineRuns each of them has at a time, each with its
	// TaskRuns. At least one of both.
	Namespaces, Runs int
	// Rate is how many changes a second there are in all: an object made, its status written, or an object removed, each of
	// which a watcher sees once. Required.
	Rate float64
	// ObjectBytes is about how large an object is, as JSON at the end of its life and without managedFields: what it lacks
	// is filled with an annotation. An object that is larger by itself stays so. Zero: 4096.
	ObjectBytes int
	// Workers bounds the requests under way at once. Zero: 8.
	Workers int
	// Seed decides the runs. Two loads on one cluster need different ones.
	Seed uint64
	// NoController says that nothing on the cluster sees deleted namespaces off, as where an API server runs alone: Remove
	// then does it. On any other cluster that would leave behind what the controller had yet to remove.
	NoController bool
	// Clock paces and dates the changes. Nil: the real one.
	Clock clock.Clock
	// Logger gets a line for what went wrong and is tried again. Nil: slog.Default.
	Logger *slog.Logger
}

const (
	defaultObjectBytes = 4096
	defaultWorkers     = 8
	// Bounds on what one load keeps in memory and asks for.
	mostRuns        = 100_000
	mostRate        = 100_000
	mostWorkers     = 256
	mostObjectBytes = 200_000 // annotations of an object have 256 KiB together
)

func (c Config) validate() error {
	var faults []error
	within := func(what string, value, least, most float64) {
		if !(value >= least && value <= most) { // so that what is no number is a fault
			faults = append(faults, fmt.Errorf("%g %s, want %g to %g", value, what, least, most))
		}
	}
	if c.REST == nil {
		faults = append(faults, errors.New("no REST configuration"))
	}
	within("namespaces", float64(c.Namespaces), 1, mostRuns)
	within("runs a namespace", float64(c.Runs), 1, mostRuns)
	within("runs", float64(c.Namespaces)*float64(c.Runs), 1, mostRuns)
	within("changes a second", c.Rate, 1e-3, mostRate)
	within("bytes an object", float64(c.ObjectBytes), 0, mostObjectBytes)
	within("workers", float64(c.Workers), 0, mostWorkers)
	return errors.Join(faults...)
}

func (c Config) withDefaults() Config {
	if c.ObjectBytes == 0 {
		c.ObjectBytes = defaultObjectBytes
	}
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Stats is what a load has done while Run ran, and how fast.
type Stats struct {
	// Changes that the API server acknowledged: Created + Updated + Removed.
	Changes                   int64
	Created, Updated, Removed int64
	// Conflicts and Errors are requests that were answered otherwise; the run was read again and went on.
	Conflicts, Errors int64
	// Elapsed is how long Run ran; Rate is Changes a second of it.
	Elapsed time.Duration
	Rate    float64
}

// String is one line for people.
func (s Stats) String() string {
	return fmt.Sprintf("%d changes in %.1f s: %.1f a second (%d made, %d updated, %d removed; %d conflicts, %d errors)",
		s.Changes, s.Elapsed.Seconds(), s.Rate, s.Created, s.Updated, s.Removed, s.Conflicts, s.Errors)
}
