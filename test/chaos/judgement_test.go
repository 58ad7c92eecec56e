package chaos_test

import (
	"errors"
	"testing"
	"time"
)

func TestAnAbsenceThatMustNotShowIsFound(t *testing.T) {
	const gone = "GP-EDGE-503"
	calm, lasting, atFirst := where(nowhere), where(anywhere), where(firstOnly)
	for name, tc := range map[string]struct {
		begun, ended where
		edge         int
		served, away int
		refused      int // of somebody else
		found        bool
	}{
		"none":                                 {calm, calm, 0, 100, 0, 0, false},
		"a few":                                {calm, calm, 0, 100, 5, 0, false},
		"many":                                 {calm, calm, 0, 100, 6, 0, true},
		"few of all, but many of one part":     {calm, calm, 0, 10, 2, 500, true},
		"all":                                  {calm, calm, 1, 0, 30, 0, true},
		"all, where it shows":                  {lasting, lasting, 1, 0, 30, 0, false},
		"all, at the edge where it shows":      {atFirst, atFirst, 0, 0, 30, 0, false},
		"all, at the other edge":               {atFirst, atFirst, 1, 0, 30, 0, true},
		"all of those that end where it shows": {calm, lasting, 0, 0, 30, 0, false},
		"all of those that end where it is mended": {lasting, calm, 0, 0, 30, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			due, other := &part{name: "due", always: true}, &part{name: "other"}
			begun := &phase{shows: tc.begun, seen: map[seen]int{}}
			l := &load{urls: make([]string, edges), cast: []*part{due, other}, current: &phase{shows: tc.ended}}
			for _, of := range []struct {
				n    int
				part *part
				what string
			}{{tc.served, due, served}, {tc.away, due, gone}, {tc.refused, other, refused}} {
				for range of.n {
					l.tally(&performance{part: of.part, edge: tc.edge}, begun, of.what)
				}
			}
			if err := l.few(begun); (err != nil) != tc.found {
				t.Errorf("found: %v", err)
			}
		})
	}
}

func TestAnAllowThatIsNotDueIsFoundInItsLine(t *testing.T) {
	right := line{Op: "listLive", App: app, Caller: "reader", Decision: "allow", Status: 200}
	with := func(change func(*line)) line {
		l := right
		change(&l)
		return l
	}
	for name, tc := range map[string]struct {
		due   bool
		err   error
		trace string
		line  line
		found bool
	}{
		"a due one":                                {true, nil, "1", right, false},
		"one that is not due":                      {false, nil, "1", right, true},
		"one that is not due, to who saw no end":   {false, errors.New("reset"), "1", right, true},
		"a due one, to who saw no end":             {true, errors.New("reset"), "1", right, false},
		"one to somebody else, who saw no end":     {true, errors.New("reset"), "1", with(func(l *line) { l.Caller = "other" }), true},
		"one for another app, to who saw no end":   {true, errors.New("reset"), "1", with(func(l *line) { l.App = otherApp }), true},
		"a refusal that nobody asked for":          {true, nil, "2", with(func(l *line) { l.Decision = "deny" }), false},
		"one that nobody asked for":                {true, nil, "2", right, true},
		"one of who waits for an edge to be there": {true, nil, "2", with(func(l *line) { l.Op = "whoami" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &part{op: "listLive", app: app, user: "reader", due: func(time.Time) bool { return tc.due }}
			v := &performance{part: p, began: time.Now(), ended: time.Now(), status: 200, err: tc.err, excused: true}
			l := &load{calls: map[string]*performance{"1": v}}
			if err := l.compare(0, map[string][]line{tc.trace: {tc.line}}); (err != nil) != tc.found {
				t.Errorf("found: %v", err)
			}
		})
	}
}
