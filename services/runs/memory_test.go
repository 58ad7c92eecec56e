package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/services/runs/results"
)

// many is Tekton Results with the runs of a busy app, whose objects are made as
// they are sent: what a test holds of them is what the server does.
type many struct {
	now        time.Time
	runs, each int
	text       func(n, size int) string
	sent       atomic.Int64 // records
}

// filler is text as objects have it: much that is the same, and digests.
func filler() func(n, size int) string {
	const sentences = 5000
	var all strings.Builder
	for i := range sentences {
		fmt.Fprintf(&all, "step %d of the task has finished with digest %016x%016x and nothing else; ", i%7, uint64(i+1)*0x9e3779b97f4a7c15, uint64(i+1)*0xbf58476d1ce4e5b9)
	}
	text := all.String()
	return func(n, size int) string {
		at := n * 99_991 % (len(text) - size)
		return text[at : at+size]
	}
}

// record gives record n of a namespace, the last stored first.
func (m *many) record(namespace, kind string, n int) results.Record {
	text := annotated(m.text(n, 12<<10))
	if kind == results.PipelineRun {
		return pipelineRun(namespace, n+1, m.now.Add(-time.Duration(n)*40*time.Minute), text)
	}
	run, k := n/m.each, m.each-n%m.each
	return taskRun(namespace, run+1, k, m.now.Add(-time.Duration(run)*40*time.Minute+time.Duration(k)*time.Second), text)
}

func annotated(text string) func(map[string]any) {
	return func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = map[string]any{"text": text} }
}

// ServeHTTP answers a list of records, page by page.
func (m *many) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, parent, _ := strings.Cut(r.URL.Path, "/parents/")
	namespace, _, _ := strings.Cut(parent, "/")
	kind, all := results.PipelineRun, m.runs
	if strings.Contains(r.FormValue("filter"), results.TaskRun) {
		kind, all = results.TaskRun, m.runs*m.each
	}
	from, _ := strconv.Atoi(r.FormValue("page_token"))
	size, _ := strconv.Atoi(r.FormValue("page_size"))
	to := min(from+size, all)
	_, _ = io.WriteString(w, `{"records":[`)
	e := json.NewEncoder(w)
	for n := from; n < to; n++ {
		if n > from {
			_, _ = io.WriteString(w, ",")
		}
		rec := m.record(namespace, kind, n)
		_ = e.Encode(map[string]any{
			"name": rec.Name, "create_time": rec.Stored, "data": map[string]any{"type": "tekton.dev/v1." + kind, "value": []byte(rec.Value)},
		})
		m.sent.Add(1)
	}
	next := ""
	if to < all {
		next = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, `],"next_page_token":%q}`, next)
}

// peakOf gives the most that lived on the heap while f ran, over what was before. What
// is garbage since the last collection, of the archive's too, is not in it.
func peakOf(f func()) int64 {
	heap := func() int64 {
		runtime.GC()
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		return int64(live[0].Value.Uint64())
	}
	before, peak := heap(), int64(0)
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			peak = max(peak, heap())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	f()
	close(stop)
	looking.Wait()
	return peak - before
}

// The whole way of two lists at once that nobody has read: through the client of Tekton
// Results, on top of what a replica keeps when it has kept all that it may.
//
// rule: R050
func TestAFullListOfABusyAppTakesFewOfItsBytes(t *testing.T) {
	// A fifth of what a list of 1000 runs is. Both together take what one may, and some
	// for the archive, which is in this process too.
	const runs, most = 200, 64<<20/5 + 10<<20
	w := newWorld(t)
	w.server.wait = time.Hour
	archive := &many{now: w.now, runs: runs, each: 4, text: filler()}
	relay := httptest.NewServer(archive)
	defer relay.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := results.New(results.Config{URL: relay.URL, Transport: transport, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	w.server.archive = client
	const kept = 16 << 20
	w.server.documents = keep(t, nil, func(c *Config) { c.CacheBytes, c.PlainBytes, c.FillTime = kept, 4<<20, cache.MaxFillTime })
	noise := rand.NewChaCha8([32]byte{})
	for i := range kept >> 20 {
		write := func(out io.Writer) error { _, err := io.CopyN(out, noise, 1<<20-1<<10); return err }
		if err := w.server.documents.put(t.Context(), runPlace(scopeOfShop, uidOf(i)), runAge, write); err != nil {
			t.Fatal(err)
		}
	}
	callers := []*identity.Claims{about("listRuns"), w.app(1)}
	to := make([]sink, len(callers))
	grown := peakOf(func() {
		var all sync.WaitGroup
		for i, claims := range callers {
			all.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fullAll, nil)
				to[i].header = http.Header{}
				w.mux().ServeHTTP(&to[i], r.WithContext(identity.NewContext(t.Context(), claims)))
			})
		}
		all.Wait()
	})
	for i := range to {
		if to[i].status != http.StatusOK || to[i].bytes < 11<<20 {
			t.Fatalf("list %d: got %d with %d bytes", i, to[i].status, to[i].bytes)
		}
	}
	if sent := archive.sent.Load(); sent != int64(len(to))*5*runs {
		t.Fatalf("%d records were sent", sent)
	}
	if grown > most {
		t.Errorf("%d bytes of memory for two lists of %d", grown, to[0].bytes)
	} else {
		t.Logf("%d bytes of memory for two lists of %d", grown, to[0].bytes)
	}
}
