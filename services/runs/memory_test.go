package runs

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	sent       int // records
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

// record gives record n, the last stored first.
func (m *many) record(kind string, n int) results.Record {
	text := annotated(m.text(n, 12<<10))
	if kind == results.PipelineRun {
		return pipelineRun(shopNamespace, n+1, m.now.Add(-time.Duration(n)*40*time.Minute), text)
	}
	run, k := n/m.each, m.each-n%m.each
	return taskRun(shopNamespace, run+1, k, m.now.Add(-time.Duration(run)*40*time.Minute+time.Duration(k)*time.Second), text)
}

func annotated(text string) func(map[string]any) {
	return func(o map[string]any) { o["metadata"].(map[string]any)["annotations"] = map[string]any{"text": text} }
}

// ServeHTTP answers a list of records, page by page.
func (m *many) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		rec := m.record(kind, n)
		_ = e.Encode(map[string]any{
			"name": rec.Name, "create_time": rec.Stored, "data": map[string]any{"type": "tekton.dev/v1." + kind, "value": []byte(rec.Value)},
		})
		m.sent++
	}
	next := ""
	if to < all {
		next = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, `],"next_page_token":%q}`, next)
}

// peakOf gives the most that was in use of the heap while f ran, over what was
// before.
func peakOf(f func()) int64 {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
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

// The whole way of a list that nobody has read: through the client of Tekton
// Results, on top of what a replica keeps when it has kept all that it may.
//
// rule: R050
func TestAFullListOfABusyAppTakesFewOfItsBytes(t *testing.T) {
	// A fifth of what a list of 1000 runs is, and may take, and some for the archive,
	// which is in this process too.
	const runs, most = 200, 64<<20/5 + 4<<20
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
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, fullAll, nil)
	to := &sink{header: http.Header{}}
	grown := peakOf(func() {
		w.mux().ServeHTTP(to, r.WithContext(identity.NewContext(t.Context(), about("listRuns"))))
	})
	if to.status != http.StatusOK || to.bytes < 11<<20 || archive.sent != 5*runs {
		t.Fatalf("got %d with %d bytes of %d records", to.status, to.bytes, archive.sent)
	}
	if grown > most {
		t.Errorf("%d bytes of memory for a list of %d", grown, to.bytes)
	} else {
		t.Logf("%d bytes of memory for a list of %d", grown, to.bytes)
	}
}
