package runs

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
)

// BenchmarkKeptList is a call for a list of 1 MB that is in memory: with the
// identity's check, the look-up and the answer, without a network.
func BenchmarkKeptList(b *testing.B) {
	w := newWorld(b)
	text := filler()
	for n := range 17 {
		w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, n+1, w.now.Add(-time.Duration(n)*time.Minute), annotated(text(n, 60<<10))))
	}
	const target = oneList + "?sinceHours=720&view=full&limit=17"
	_, tag := w.body(target, "gzip")
	h, signer := w.guarded()
	token := signed(b, signer, "listRuns")
	for name, headers := range map[string][2]string{"plain": {"Accept-Encoding", "identity"}, "gzip": {"Accept-Encoding", "gzip"}, "not modified": {"If-None-Match", tag}} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, target, nil)
			r.Header.Set("Accept-Encoding", "gzip")
			r.Header.Set(headers[0], headers[1])
			b.ReportAllocs()
			for b.Loop() {
				r.Header.Set(identity.Header, token) // which the handler takes out
				to := &sink{header: http.Header{}}
				h.ServeHTTP(to, r)
				if to.status != http.StatusOK && to.status != http.StatusNotModified {
					b.Fatal(to.status)
				}
				b.SetBytes(int64(to.bytes))
			}
		})
	}
}
