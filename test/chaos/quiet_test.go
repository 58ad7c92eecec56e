package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"hangar.io/glidepath/test/chaos/steps"
)

// away are the rules that say that a part is away, or too slow: a review, or a decision, that took too long. On a slow machine
// any call may get one. Where no part's absence may show, few of them may.
var away = []string{"GP-API-502", "GP-EDGE-503"}

const (
	// mostAway is the share of calls that may be told of an absence that must not show, in percent.
	mostAway = 5
	// leastCalls is how many calls of an edge, and leastServed how many of each part that is always due, make a share.
	leastCalls, leastServed = 100, 8
	// dilution is how long calls may go on until those that a slow machine failed are few among them. What fails for longer
	// than a twentieth of it, or again and again, stays.
	dilution = 30 * time.Second
)

// where says at which edges a part's absence may show. It is nowhere unless a fault says so.
type where int

const (
	nowhere where = iota
	firstOnly
	anywhere
)

func (w where) at(edge int) bool { return w == anywhere || (w == firstOnly && edge == 0) }

// What is counted of a phase besides what came of calls.
const (
	// called counts all calls.
	called = "called"
	// uncalled counts the answers that a part is away or that were cut, where none may seem to be.
	uncalled = "uncalled for"
)

// tally counts a call for the phase that it began in. An absence may also be that of the phase that the call ended in. It is
// called with the lock held.
func (l *load) tally(v *performance, begun *phase, what string) {
	words := []string{what, called}
	if (what == broken || slices.Contains(away, what)) && !begun.shows.at(v.edge) && !l.current.shows.at(v.edge) {
		words = append(words, uncalled)
	}
	for _, word := range words {
		begun.seen[seen{v.edge, word}]++
		begun.seen[seen{v.edge, v.part.name + ": " + word}]++
	}
}

// few is an error when too large a share of an edge's calls, or of the calls of one part that is always due, were told that a
// part is away.
func (l *load) few(p *phase) error {
	var faults []error
	for edge := range l.urls {
		if p.shows.at(edge) {
			continue
		}
		faults = append(faults, l.fewOf(p, edge, ""))
		for _, part := range l.cast {
			if part.always {
				faults = append(faults, l.fewOf(p, edge, part.name+": "))
			}
		}
	}
	return errors.Join(faults...)
}

func (l *load) fewOf(p *phase, edge int, part string) error {
	n, all := l.count(p, edge, part+uncalled), l.count(p, edge, part+called)
	if n*100 > all*mostAway {
		return fmt.Errorf("%s: edge %d: %s%d of %d calls were told that a part is away", p.name, edge+1, part, n, all)
	}
	return nil
}

// enoughCalls is an error until the calls of a phase are enough to make a share, and each part that is always due was served at
// every edge where no absence may show.
func (l *load) enoughCalls(p *phase) error {
	for edge := range l.urls {
		if p.shows.at(edge) {
			continue
		}
		if n := l.count(p, edge, called); n < leastCalls {
			return fmt.Errorf("%d of %d calls at edge %d", n, leastCalls, edge+1)
		}
		for _, part := range l.cast {
			if n := l.count(p, edge, part.name+": "+served); part.always && n < leastServed {
				return fmt.Errorf("%s at edge %d: served %d times of %d", part.name, edge+1, n, leastServed)
			}
		}
	}
	return nil
}

// unnoticed is what felt is where nothing may be felt: enough calls are made, and served.
func unnoticed(_ context.Context, w *world, p *phase) error { return w.load.enoughCalls(p) }

// quiet wants no absence to show in a phase where none may, but for a few calls that a slow machine failed.
func (w *world) quiet(t *testing.T, p *phase) {
	t.Helper()
	steps.Within(t, dilution, "few calls are told that a part is away", func() error { return w.load.few(p) })
}
