package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/seal"
)

// newJournal is a replica's, which appends until the test ends.
func newJournal(t *testing.T, r *Redis, keys seal.Keys) *Journal {
	t.Helper()
	j, err := NewJournal(JournalConfig{Name: "test", Seal: keys, Redis: r, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { j.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return j
}

// of is an entry that says what it is.
func of(before, at uint64) Entry {
	return Entry{Before: before, At: at, Was: before, Is: at, Body: fmt.Appendf(nil, "%d after %d", at, before)}
}

// settled waits until all that was given to a journal is appended, or not.
func settled(t *testing.T, j *Journal, entries float64) {
	t.Helper()
	eventually(t, "the entries to be appended", func() bool {
		sum := 0.0
		for _, result := range []string{entryAppended, entryDropped, entryFailed} {
			sum += testutil.ToFloat64(j.entries.WithLabelValues(result))
		}
		return sum == entries
	})
}

// reads wants a journal to give these versions after one.
func reads(t *testing.T, j *Journal, stream string, after uint64, want ...uint64) {
	t.Helper()
	all, err := j.Read(t.Context(), stream, after)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for _, e := range all {
		got = append(got, e.At)
		if !strings.HasPrefix(string(e.Body), fmt.Sprintf("%d after ", e.At)) {
			t.Errorf("entry %d is %.50q", e.At, e.Body)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("after %d it gives %d, want %d", after, got, want)
	}
}

func admin(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const journalKey = "glidepath:1:test:{log:s}"

func TestWhatAnyReplicaSawIsReadOnceByAll(t *testing.T) {
	url := realRedis(t)
	a, b := newJournal(t, openRedis(t, url), testKeys(t, 1)), newJournal(t, openRedis(t, url), testKeys(t, 1))
	for _, at := range []uint64{10, 12, 15, 1 << 60} {
		a.Append("s", of(at-1, at))
	}
	a.Append("another", of(10, 13))
	settled(t, a, 5)
	reads(t, b, "s", 9, 10)
	// B was there from 11 on, and saw what came between.
	for _, e := range []Entry{of(11, 12), of(12, 15), of(15, 1<<60), of(1<<60, 1<<60+1)} {
		b.Append("s", e)
	}
	settled(t, b, 4)
	reads(t, a, "s", 11, 12)
	reads(t, a, "s", 14, 15)
	reads(t, a, "s", 1<<60-1, 1<<60, 1<<60+1)
	reads(t, a, "s", 1<<60+1)
	reads(t, b, "another", 10, 13)
	if n := admin(t, url).XLen(t.Context(), journalKey).Val(); n != 5 {
		t.Errorf("%d entries, want each once", n)
	}
	if life := admin(t, url).PTTL(t.Context(), journalKey).Val(); life <= 0 || life > journalLife {
		t.Errorf("it is kept for %s", life)
	}
}

func TestAGapInAJournalIsNeverPassedOver(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, c *redis.Client){
		"an entry is gone": func(t *testing.T, c *redis.Client) { c.XDel(t.Context(), journalKey, "3-0") },
		"an entry was cut": func(t *testing.T, c *redis.Client) { rewrite(t, c, func(v string) string { return v[:len(v)-1] }) },
		"an entry is another's": func(t *testing.T, c *redis.Client) {
			first, err := c.XRange(t.Context(), journalKey, "2-0", "2-0").Result()
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, c, func(string) string { return first[0].Values["v"].(string) })
		},
		"an entry is none": func(t *testing.T, c *redis.Client) { rewrite(t, c, func(string) string { return "" }) },
	} {
		t.Run(name, func(t *testing.T) {
			url := realRedis(t)
			j := newJournal(t, openRedis(t, url), testKeys(t, 1))
			for at := range uint64(6) {
				j.Append("s", of(at, at+1))
			}
			settled(t, j, 6)
			reads(t, j, "s", 1, 2, 3, 4, 5, 6)
			harm(t, admin(t, url))
			reads(t, j, "s", 0, 1, 2)
			reads(t, j, "s", 3, 4, 5, 6)
		})
	}
}

// rewrite puts the entries back with the third one changed.
func rewrite(t *testing.T, c *redis.Client, change func(v string) string) {
	t.Helper()
	all, err := c.XRange(t.Context(), journalKey, "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	c.Del(t.Context(), journalKey)
	for i, e := range all {
		if i == 2 {
			e.Values["v"] = change(e.Values["v"].(string))
		}
		if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: journalKey, ID: e.ID, Values: e.Values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever appends first may be one that had missed something.
func TestAnEntryThatDoesNotFitTheOneBeforeItIsAGap(t *testing.T) {
	j := newJournal(t, openRedis(t, realRedis(t)), testKeys(t, 1))
	missed := of(2, 4)
	missed.Was = 99
	for _, e := range []Entry{of(0, 1), of(1, 2), missed, of(4, 5)} {
		j.Append("s", e)
	}
	settled(t, j, 4)
	reads(t, j, "s", 0, 1, 2)
	reads(t, j, "s", 2, 4, 5)
	all, err := j.Read(t.Context(), "s", 2)
	if err != nil || all[0].Before != 2 || all[0].Was != 99 || all[0].Is != 4 {
		t.Errorf("it is read as %+v, %v", all, err)
	}
}

func TestAnotherServicesKeyOpensNothing(t *testing.T) {
	url := realRedis(t)
	j := newJournal(t, openRedis(t, url), testKeys(t, 1))
	j.Append("s", of(1, 2))
	settled(t, j, 1)
	reads(t, newJournal(t, openRedis(t, url), testKeys(t, 2)), "s", 1)
	for _, e := range admin(t, url).XRange(t.Context(), journalKey, "-", "+").Val() {
		if strings.Contains(fmt.Sprint(e.Values), "after") {
			t.Errorf("it stands there in the clear: %q", e.Values)
		}
	}
}

func TestAJournalKeepsNoMoreThanItMay(t *testing.T) {
	url := realRedis(t)
	c := admin(t, url)
	t.Run("in number", func(t *testing.T) {
		j := newJournal(t, openRedis(t, url), testKeys(t, 1))
		for at := range uint64(journalCount + 200) {
			j.Append("s", of(at, at+1))
		}
		settled(t, j, journalCount+200)
		if n := c.XLen(t.Context(), journalKey).Val(); n != journalCount {
			t.Errorf("%d entries", n)
		}
		if all, err := j.Read(t.Context(), "s", 200); err != nil || len(all) != journalCount {
			t.Errorf("%d entries are read, %v", len(all), err)
		}
		reads(t, j, "s", 0)
		c.Del(t.Context(), journalKey)
	})
	t.Run("in bytes", func(t *testing.T) {
		j := newJournal(t, openRedis(t, url), testKeys(t, 1))
		big := make([]byte, 900<<10)
		_, _ = rand.NewChaCha8([32]byte{}).Read(big) // it does not pack
		const n = 40
		for at := range uint64(n) {
			e := of(at, at+1)
			e.Body = append(append(e.Body, " "...), big...)
			j.Append("s", e)
			settled(t, j, float64(at+1))
		}
		size := 0
		for _, e := range c.XRange(t.Context(), journalKey, "-", "+").Val() {
			size += len(e.Values["v"].(string))
		}
		if size > journalBytes+maxEntry || size < journalBytes/4 {
			t.Errorf("%d bytes", size)
		}
		c.Del(t.Context(), journalKey)
	})
	t.Run("in time", func(t *testing.T) {
		j := newJournal(t, openRedis(t, url), testKeys(t, 1))
		j.Append("s", of(0, 1))
		settled(t, j, 1)
		old := time.Now().Add(-journalLife - time.Second).UnixMilli()
		rewriteAge(t, c, old)
		j.Append("s", of(1, 2))
		settled(t, j, 2)
		reads(t, j, "s", 1, 2)
		if n := c.XLen(t.Context(), journalKey).Val(); n != 1 {
			t.Errorf("%d entries", n)
		}
	})
}

// What packs well is kept by thousands, and unpacks to more than there is memory.
func TestNoMoreIsReadOfAJournalThanItMayHave(t *testing.T) {
	j := newJournal(t, openRedis(t, realRedis(t)), testKeys(t, 1))
	const n, body = 12, 2 << 20
	for at := range uint64(n) {
		e := of(at, at+1)
		e.Body = append(e.Body, make([]byte, body)...)
		j.Append("s", e)
		settled(t, j, float64(at+1))
	}
	for after := uint64(0); after < n; {
		all, err := j.Read(t.Context(), "s", after)
		if err != nil || len(all) == 0 {
			t.Fatalf("after %d: %d entries, %v", after, len(all), err)
		}
		size := 0
		for _, e := range all {
			size += len(e.Body)
		}
		if size > journalBytes+maxBody {
			t.Errorf("after %d: %d bytes are read", after, size)
		}
		after = all[len(all)-1].At
	}
}

func TestAnEntryLargerThanAnyOfOursIsNotSent(t *testing.T) {
	url := realRedis(t)
	r, c := openRedis(t, url), admin(t, url)
	for at, size := range []int{1, 1, maxEntry + 1, 1} {
		if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: journalKey, ID: idOf(uint64(at + 1)), Values: []any{"v", make([]byte, size)}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range []int{2, 1, 0, 1} {
		reply, err := r.ask(t.Context(), 0, entriesScript, []string{journalKey}, "("+idOf(uint64(after)), pageBytes, journalCount, maxEntry)
		if page, ok := reply.([]any); err != nil || !ok || len(page) != 2*want {
			t.Errorf("after %d: a %T of %d, %v", after, reply, len(page), err)
		}
	}
}

// lastDeadline answers every command with nothing, and notes until when the last
// one might have taken.
type lastDeadline struct{ at time.Time }

func (*lastDeadline) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lastDeadline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *lastDeadline) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, _ redis.Cmder) error {
		d.at, _ = ctx.Deadline()
		return nil
	}
}

// One who comes back must not cost all caches their Redis: much takes longer to
// send.
func TestAPageOfAJournalHasTimeForItsSize(t *testing.T) {
	const timeout = time.Hour
	r, err := OpenRedis(RedisConfig{URL: "redis://127.0.0.1:1/0", Service: "test", Timeout: timeout, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var noted lastDeadline
	r.client.AddHook(&noted)
	r.up.Store(true)
	j := newJournal(t, r, testKeys(t, 1))
	began := time.Now()
	reads(t, j, "s", 0)
	if want := began.Add(timeout + carryTime(pageBytes)); noted.at.Before(want) {
		t.Errorf("it has until %s, want %s", noted.at, want)
	}
}

func rewriteAge(t *testing.T, c *redis.Client, at int64) {
	t.Helper()
	all := c.XRange(t.Context(), journalKey, "-", "+").Val()
	c.Del(t.Context(), journalKey)
	for _, e := range all {
		e.Values["t"] = at
		if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: journalKey, ID: e.ID, Values: e.Values}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhateverStandsAtAJournalsKeyTheNextEntryIsKept(t *testing.T) {
	for name, put := range map[string]func(c *redis.Client){
		"a text": func(c *redis.Client) { c.Set(t.Context(), journalKey, "x", 0) },
		"a stream of others": func(c *redis.Client) {
			c.XAdd(t.Context(), &redis.XAddArgs{Stream: journalKey, ID: "1-7", Values: []string{"n", "inf"}})
		},
		"sums that make no sum": func(c *redis.Client) {
			c.XAdd(t.Context(), &redis.XAddArgs{Stream: journalKey, ID: "1-0", Values: []string{"n", "-9e99", "v", "x"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := realRedis(t)
			j := newJournal(t, openRedis(t, url), testKeys(t, 1))
			put(admin(t, url))
			reads(t, j, "s", 0)
			j.Append("s", of(7, 8))
			settled(t, j, 1)
			reads(t, j, "s", 7, 8)
		})
	}
}

// What Redis refuses a journal, it may still do for caches.
func TestAJournalThatIsRefusedTakesRedisFromNoCache(t *testing.T) {
	real := devtest.Redis(t, "user cache on >secret ~glidepath:1:test:* -@all +evalsha +eval +time +getrange +strlen +get +set +del +pttl +pexpire")
	r := openRedis(t, as(t, real.URL, "cache", "secret"))
	j := newJournal(t, r, testKeys(t, 1))
	j.Append("s", of(1, 2))
	settled(t, j, 1)
	if got := testutil.ToFloat64(j.entries.WithLabelValues(entryFailed)); got != 1 || !r.Up() {
		t.Errorf("%v entries failed, and Redis is used: %t", got, r.Up())
	}
	if _, err := j.Read(t.Context(), "s", 1); err == nil || !r.Up() {
		t.Errorf("reading gives %v, and Redis is used: %t", err, r.Up())
	}
	s := &source{value: "v"}
	expect(t, newCache(t, r), "k", time.Hour, s, "v")
	expect(t, newCache(t, r), "k", time.Hour, s, "v")
	s.expectReads(t, 1)
}

// A Redis that is away is waited for by nobody, and what happens meanwhile is a
// gap when it is back.
func TestWhatHappensWhileRedisIsAwayIsAGap(t *testing.T) {
	for name, tc := range map[string]struct {
		harm, mend func(t *testing.T, r *devtestRedis)
		kept       bool // what was appended before
	}{
		"killed": {func(_ *testing.T, r *devtestRedis) { r.Process.Kill() }, func(t *testing.T, r *devtestRedis) {
			if err := r.Process.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, false},
		"paused": {func(_ *testing.T, r *devtestRedis) { r.Process.Pause() }, func(_ *testing.T, r *devtestRedis) { r.Process.Resume() }, true},
		"flushed": {func(t *testing.T, r *devtestRedis) { admin(t, r.URL).FlushAll(t.Context()) }, func(*testing.T, *devtestRedis) {
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			real := devtest.Redis(t)
			r := openWithin(t, real.URL, hang)
			j := newJournal(t, r, testKeys(t, 1))
			for at := range uint64(3) {
				j.Append("s", of(at, at+1))
			}
			settled(t, j, 3)
			tc.harm(t, real)
			quickly(t, func() {
				for at := range uint64(3) {
					j.Append("s", of(at+3, at+4))
				}
				settled(t, j, 6)
			})
			tc.mend(t, real)
			eventually(t, "Redis to be used again", r.Up)
			j.Append("s", of(6, 7))
			settled(t, j, 7)
			reads(t, j, "s", 6, 7)
			all, err := j.Read(t.Context(), "s", 0)
			if err != nil || (len(all) > 0) != tc.kept {
				t.Errorf("of what was before, %d entries are read, %v", len(all), err)
			}
			for i, e := range all {
				if e.At != uint64(i+1) {
					t.Errorf("entry %d is %d", i, e.At)
				}
			}
		})
	}
}

type devtestRedis = devenv.Redis

func TestTheJournalsOfAClusterStandWhereTheirStreamsDo(t *testing.T) {
	real, c := cluster(t, "user cache on >secret ~glidepath:1:test:* -@all +evalsha +eval +time +getrange +strlen +get +set +del +pttl +pexpire +cluster +xadd +xrange +xrevrange +xtrim")
	r := openRedis(t, as(t, real, "cache", "secret")+"?addr="+c.Options().Addr)
	j := newJournal(t, r, testKeys(t, 1))
	for at := range uint64(3) {
		j.Append("s", of(at, at+1))
		j.Append("another", of(at, at+1))
	}
	settled(t, j, 6)
	reads(t, j, "s", 0, 1, 2, 3)
	reads(t, j, "another", 1, 2, 3)
}
