package livehub

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/identity"
)

// discard is a ResponseWriter that counts.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// BenchmarkCachedList is a call for a list of 1 MB that is in memory: with the
// identity's check, the look-up and the answer, without a network.
func BenchmarkCachedList(b *testing.B) {
	c := newCluster(b)
	for i := range 64 {
		c.put("pipelineruns", object{namespace: shopNS, name: fmt.Sprintf("run-%02d", i), spec: fmt.Sprintf(`{"pad":%q}`, strings.Repeat("0123456789abcdef", 1024))})
	}
	p := newReplica(b, c, "")
	for name, headers := range map[string][]string{
		"plain":        {"Accept-Encoding", "identity"},
		"gzip":         {"Accept-Encoding", "gzip"},
		"not modified": {"If-None-Match", p.live().Header.Get("ETag")},
	} {
		b.Run(name, func(b *testing.B) {
			r := p.request("/v1/apps/shop/live", claims("listLive", aboutShop), headers...)
			token := r.Header.Get(identity.Header)
			b.ReportAllocs()
			for b.Loop() {
				r.Header.Set(identity.Header, token) // which the handler takes out
				w := &discard{header: http.Header{}}
				p.handler.ServeHTTP(w, r)
				if w.status != http.StatusOK && w.status != http.StatusNotModified {
					b.Fatal(w.status)
				}
				b.SetBytes(int64(w.bytes))
			}
		})
	}
}
