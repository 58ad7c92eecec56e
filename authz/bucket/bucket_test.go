package bucket_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/internal/ratelimit"
)

// limit is three calls at once and one more every ten seconds.
var limit = ratelimit.Limit{Bucket: "defaults", Requests: 6, Per: time.Minute, Burst: 3}

// wider is the caller's for all of its calls.
var wider = ratelimit.Limit{Bucket: "defaults", Requests: 12, Per: time.Minute, Burst: 5}

// taken counts how many of n calls are taken.
func taken(t *bucket.Table, n int, c bucket.Call) (ok int) {
	for range n {
		if _, refused := t.Take(c); !refused {
			ok++
		}
	}
	return ok
}

func TestACallerMayUseItsBurstAndThenItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := bucket.New(bucket.Config{})
		c := bucket.Call{Caller: "reader", Each: limit}
		if n := taken(tab, 10, c); n != 3 {
			t.Fatalf("%d calls at once, want 3", n)
		}
		for range 3 {
			time.Sleep(limit.Interval() - 1)
			if n := taken(tab, 1, c); n != 0 {
				t.Error("a call comes back early")
			}
			time.Sleep(time.Nanosecond)
			if n := taken(tab, 2, c); n != 1 {
				t.Errorf("%d calls come back in %s, want 1", n, limit.Interval())
			}
		}
		time.Sleep(time.Hour)
		if n := taken(tab, 10, c); n != 3 {
			t.Errorf("%d calls at once after a long rest, want 3", n)
		}
	})
}

func TestWhoWaitsAsLongAsIsSaidIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := bucket.New(bucket.Config{})
		for _, c := range []bucket.Call{
			{Caller: "alone", Each: limit},
			{Caller: "alone", InAll: wider},
			{Caller: "tower", Person: "ada", Each: limit, InAll: wider},
			{Caller: "fast", Each: ratelimit.Limit{Bucket: "x", Requests: 999_983, Per: time.Second, Burst: 7}},
		} {
			for range 50 {
				r, refused := tab.Take(c)
				for range 5 { // asking on makes nobody wait longer
					if again, r2 := tab.Take(c); refused && (!r2 || again != r) {
						t.Fatalf("%+v: %+v, then %+v", c, r, again)
					}
				}
				if !refused {
					continue
				}
				if r.Wait <= 0 || r.Wait > c.Each.Per+c.InAll.Per {
					t.Fatalf("a wait of %s", r.Wait)
				}
				time.Sleep(r.Wait)
				if again, refused := tab.Take(c); refused {
					t.Fatalf("%+v: after %s it is refused for another %s", c, r.Wait, again.Wait)
				}
			}
		}
	})
}

func TestOneIsNotLimitedByAnother(t *testing.T) {
	t.Parallel()
	noisy := bucket.Call{Caller: "tower", Person: "ada", Each: limit}
	other := limit
	other.Bucket = "operations.listLive"
	for name, quiet := range map[string]bucket.Call{
		"another person of the caller":  {Caller: "tower", Person: "bob", Each: limit},
		"the caller for nobody":         {Caller: "tower", Each: limit},
		"the person by another caller":  {Caller: "hangar", Person: "ada", Each: limit},
		"a caller with all of its name": {Caller: "towerada", Each: limit},
		"another bucket":                {Caller: "tower", Person: "ada", Each: other},
		"no limit":                      {Caller: "tower", Person: "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := bucket.New(bucket.Config{})
			if n := taken(tab, 50, noisy); n != 3 {
				t.Fatalf("the noisy one made %d calls, want 3", n)
			}
			if n := taken(tab, 3, quiet); n != 3 {
				t.Errorf("%d of 3 calls", n)
			}
		})
	}
}

func TestANoisyPersonSpendsOnlyItsOwnShareOfTheCallers(t *testing.T) {
	t.Parallel()
	tab := bucket.New(bucket.Config{})
	person := func(name string) bucket.Call {
		return bucket.Call{Caller: "tower", Person: name, Each: limit, InAll: wider}
	}
	if n := taken(tab, 100, person("ada")); n != 3 {
		t.Errorf("ada made %d calls, want 3", n)
	}
	if n := taken(tab, 100, person("bob")); n != 2 {
		t.Errorf("bob made %d calls, want the 2 that are left of the caller's 5", n)
	}
	r, refused := tab.Take(person("cleo"))
	if !refused || !r.InAll || r.Limit != wider {
		t.Errorf("cleo: %+v, %t; want the caller's limit in all", r, refused)
	}
	if n := taken(tab, 3, bucket.Call{Caller: "reader", Each: limit, InAll: wider}); n != 3 {
		t.Errorf("another caller made %d of 3 calls", n)
	}
}

// A call that the caller's limit refuses leaves the person's bucket as it was.
func TestARefusedCallTakesFromNeitherBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := bucket.New(bucket.Config{})
		narrow := ratelimit.Limit{Bucket: "defaults", Requests: 1, Per: time.Second, Burst: 1}
		taken(tab, 1, bucket.Call{Caller: "tower", Person: "bob", InAll: narrow})
		if n := taken(tab, 20, bucket.Call{Caller: "tower", Person: "ada", Each: limit, InAll: narrow}); n != 0 {
			t.Fatalf("%d calls over the caller's limit", n)
		}
		if n := taken(tab, 5, bucket.Call{Caller: "tower", Person: "ada", Each: limit}); n != 3 {
			t.Errorf("ada made %d calls, want all 3", n)
		}
	})
}

func TestAChangedLimitForgetsNothing(t *testing.T) {
	tighter, looser := limit, limit
	tighter.Requests, tighter.Burst = 3, 1
	looser.Requests, looser.Burst = 600, 300
	for name, tt := range map[string]struct {
		next ratelimit.Limit
		want int // calls at once after the change
	}{
		"the same":                         {limit, 0},
		"tighter":                          {tighter, 0},
		"looser: what was used stays used": {looser, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tab := bucket.New(bucket.Config{})
				taken(tab, 3, bucket.Call{Caller: "reader", Each: limit})
				after := bucket.Call{Caller: "reader", Each: tt.next}
				r, refused := tab.Take(after)
				if tt.next == looser {
					// The bucket is much larger; the thirty seconds that were used
					// are all that it holds.
					if !refused || r.Wait > looser.Interval() {
						t.Errorf("%+v, %t", r, refused)
					}
				}
				if n := taken(tab, 5, after); n != tt.want {
					t.Errorf("%d calls at once, want %d", n, tt.want)
				}
				time.Sleep(tt.next.Interval())
				if n := taken(tab, 5, after); n != 1 {
					t.Errorf("%d calls after %s, want 1", n, tt.next.Interval())
				}
			})
		})
	}
}

func TestAFloodOfNamesFreesNobodyAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, people = 200, 50
		tab := bucket.New(bucket.Config{Callers: callers, People: people})
		ada := bucket.Call{Caller: "tower", Person: "ada", Each: limit}
		bob := bucket.Call{Caller: "tower", Person: "bob", Each: limit}
		taken(tab, 3, ada)
		taken(tab, 1, bob)
		free := 0
		for i := range 10_000 {
			free += taken(tab, 1, bucket.Call{Caller: "tower", Person: fmt.Sprint("made-up-", i), Each: limit})
		}
		// As many as have a bucket of their own, and what the crowd shares.
		if want := people - 2 + 3*bucket.Crowd; free != want {
			t.Errorf("%d calls by made-up names, want %d", free, want)
		}
		if n := taken(tab, 1, ada); n != 0 {
			t.Error("the flood freed ada of the limit")
		}
		if n := taken(tab, 5, bob); n != 2 {
			t.Errorf("bob, who was there before, made %d calls, want 2", n)
		}
		for name, c := range map[string]bucket.Call{
			"another caller":          {Caller: "reader", Each: limit},
			"another caller's person": {Caller: "hangar", Person: "ada", Each: limit},
			"the caller for nobody":   {Caller: "tower", Each: limit},
		} {
			if n := taken(tab, 5, c); n != 3 {
				t.Errorf("%s made %d calls, want 3", name, n)
			}
		}
		r, refused := tab.Take(bucket.Call{Caller: "tower", Person: "one more", Each: limit})
		if !refused || !r.Shared || r.Limit.Requests != limit.Requests*bucket.Crowd || r.Limit.Burst != limit.Burst*bucket.Crowd {
			t.Errorf("one of the crowd: %+v, %t", r, refused)
		}
		if tab.Crowded() == 0 {
			t.Error("no call is counted as crowded")
		}
		for i := range 10_000 {
			taken(tab, 1, bucket.Call{Caller: fmt.Sprint("caller-", i), Each: limit})
		}
		if n, most := tab.Len(), callers+people+1; n > most {
			t.Errorf("%d callers and people are kept, want %d at most", n, most)
		}
		// With no room at all, the known are as they were.
		if n := taken(tab, 5, ada); n != 0 {
			t.Error("the flood freed ada of the limit")
		}
		// Once its buckets are full again there is room for everyone.
		time.Sleep(time.Minute)
		for _, c := range []bucket.Call{{Caller: "newcomer", Each: limit}, {Caller: "tower", Person: "newcomer", Each: limit}} {
			if n := taken(tab, 5, c); n != 3 {
				t.Errorf("%+v made %d calls after the flood, want 3", c, n)
			}
		}
		if n := tab.Len(); n > 3 {
			t.Errorf("%d callers and people are kept after the flood", n)
		}
	})
}

// The bound is one of people, however many limits there are for each of them.
func TestManyPeopleUnderManyLimitsAreNoCrowd(t *testing.T) {
	t.Parallel()
	const operations, people = 40, 2000
	tab := bucket.New(bucket.Config{})
	for o := range operations {
		l := limit
		l.Bucket = fmt.Sprint("operations.o", o)
		for i := range people {
			c := bucket.Call{Caller: "tower", Person: fmt.Sprint("person-", i), Each: l}
			if n := taken(tab, 3, c); n != 3 {
				t.Fatalf("person %d made %d of 3 calls of operation %d", i, n, o)
			}
		}
	}
	if n := tab.Crowded(); n != 0 {
		t.Errorf("%d calls are counted as crowded", n)
	}
}

// With room for no more callers, those that are new share many wide buckets.
func TestANoisyStrangerMeetsFewOthers(t *testing.T) {
	t.Parallel()
	tab := bucket.New(bucket.Config{Callers: 1})
	known := bucket.Call{Caller: "known", Each: limit, InAll: wider}
	taken(tab, 1, known)
	noisy := bucket.Call{Caller: "noisy", Each: limit, InAll: wider}
	if n := taken(tab, 1000, noisy); n != 3*bucket.Crowd {
		t.Errorf("the noisy one made %d calls, want %d", n, 3*bucket.Crowd)
	}
	if n := taken(tab, 5, known); n != 2 {
		t.Errorf("the known one made %d calls, want the 2 that it had left", n)
	}
	served := 0
	for i := range 100 {
		served += taken(tab, 1, bucket.Call{Caller: fmt.Sprint("quiet-", i), Each: limit, InAll: wider})
	}
	if served < 50 {
		t.Errorf("%d of 100 others were served", served)
	}
}

// What is swept is only what a new bucket would say too.
func TestSweepingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := bucket.New(bucket.Config{}), bucket.New(bucket.Config{})
		for i := range 5000 {
			taken(large, 1, bucket.Call{Caller: fmt.Sprint(i), Each: limit})
			c := bucket.Call{Caller: fmt.Sprint("c", i%7), Each: limit}
			_, a := small.Take(c)
			_, b := large.Take(c)
			if a != b {
				t.Fatalf("call %d: refused %t, and %t where many others are", i, a, b)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := large.Len(); n > 2100 {
			t.Errorf("%d buckets are kept of callers that rest", n)
		}
	})
}

func TestConcurrentCallsShareOneBucket(t *testing.T) {
	t.Parallel()
	tab := bucket.New(bucket.Config{})
	slow := ratelimit.Limit{Bucket: "defaults", Requests: 1, Per: time.Hour / 500, Burst: 500}
	var ok atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { ok.Add(int64(taken(tab, 200, bucket.Call{Caller: "reader", Each: slow}))) })
	}
	wg.Wait()
	// One more comes back every seven seconds.
	if n := ok.Load(); n < 500 || n > 510 {
		t.Errorf("%d of 1600 calls were taken, want 500", n)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	tab := bucket.New(bucket.Config{Callers: 1})
	tab.MustRegister(reg)
	taken(tab, 1, bucket.Call{Caller: "a", Each: limit})
	taken(tab, 2, bucket.Call{Caller: "b", Each: limit})
	for name, want := range map[string]float64{"glidepath_authz_rate_limit_buckets": 1, "glidepath_authz_rate_limit_crowded_total": 2} {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range families {
			if f.GetName() == name {
				found = true
				m := f.GetMetric()[0]
				if got := m.GetGauge().GetValue() + m.GetCounter().GetValue(); got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
		}
		if !found {
			t.Errorf("no %s", name)
		}
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func BenchmarkTake(b *testing.B) {
	tab := bucket.New(bucket.Config{})
	fast := ratelimit.Limit{Bucket: "defaults", Requests: ratelimit.MaxRequests, Per: time.Second, Burst: ratelimit.MaxRequests}
	c := bucket.Call{Caller: "system:serviceaccount:tower:tower", Person: "user:default/ada", Each: fast, InAll: fast}
	b.ReportAllocs()
	for b.Loop() {
		tab.Take(c)
	}
}

// The cost of a new bucket while the table is as large as it gets.
func BenchmarkFlood(b *testing.B) {
	tab := bucket.New(bucket.Config{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tab.Take(bucket.Call{Caller: fmt.Sprint("caller-", i), Each: limit})
	}
	b.ReportMetric(float64(tab.Len()), "buckets")
}

// What a caller, and a person, takes of memory when there are as many as there
// may be.
func BenchmarkBytes(b *testing.B) {
	for name, bench := range map[string]struct {
		n    int
		call func(string) bucket.Call
	}{
		"caller": {bucket.DefaultCallers, func(s string) bucket.Call { return bucket.Call{Caller: s, Each: limit, InAll: wider} }},
		"person": {bucket.DefaultPeople, func(s string) bucket.Call { return bucket.Call{Caller: "tower", Person: s, Each: limit} }},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				tab := bucket.New(bucket.Config{})
				for i := range bench.n {
					tab.Take(bench.call(fmt.Sprint("number-", i)))
				}
				b.ReportMetric(float64(heap()-before)/float64(tab.Len()), "B/"+name)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
