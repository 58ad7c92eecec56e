package livehub

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// bigCluster has lists that are worth compressing.
func bigCluster(t testing.TB) *cluster {
	t.Helper()
	c := newCluster(t)
	for i := range 40 {
		c.addRuns(fmt.Sprintf("%s/run-%02d", shopNS, i))
		c.addTasks("a", fmt.Sprintf("%s/task-%02d", shopNS, i))
	}
	return c
}

// requests are one call of each form that an answer has.
var requests = map[string]struct{ target, op string }{
	"listLive":         {"/v1/apps/shop/live", "listLive"},
	"listLiveRuns":     {"/v1/live?app=shop", "listLiveRuns"},
	"a page":           {"/v1/live?app=shop&limit=20", "listLiveRuns"},
	"listLiveTaskRuns": {"/v1/live/taskruns?app=shop&pipelineRuns=a", "listLiveTaskRuns"},
}

// rule: R290, R291
func TestEveryAnswerHasATagThatSavesItsBody(t *testing.T) {
	c := bigCluster(t)
	p := newReplica(t, c, "")
	for name, call := range requests {
		for _, accept := range []string{"identity", "gzip"} {
			t.Run(name+" as "+accept, func(t *testing.T) {
				get := func(headers ...string) response {
					return p.do(p.request(call.target, claims(call.op, aboutShop), append(headers, "Accept-Encoding", accept)...))
				}
				first := get()
				tag := first.Header.Get("ETag")
				if first.ok(t); tag == "" || first.Header.Get("Cache-Control") != "private, no-cache" || first.Header.Get("Vary") != "Accept-Encoding" {
					t.Errorf("headers %v", first.Header)
				}
				if (first.Header.Get("Content-Encoding") == "gzip") != (accept == "gzip") {
					t.Errorf("sent as %q", first.Header.Get("Content-Encoding"))
				}
				if again := get("If-None-Match", `"x", `+tag); again.StatusCode != http.StatusNotModified || len(again.body) != 0 || again.Header.Get("ETag") != tag {
					t.Errorf("again: status %d, %d bytes, tag %s", again.StatusCode, len(again.body), again.Header.Get("ETag"))
				}
				if other := get("If-None-Match", `"x"`); !bytes.Equal(other.ok(t), first.body) {
					t.Error("another tag gets another body")
				}
			})
		}
	}
}

func TestBothFormsAreTheSameAnswer(t *testing.T) {
	p := newReplica(t, bigCluster(t), "")
	plain, zipped := p.live(), p.live("Accept-Encoding", "gzip")
	r, err := gzip.NewReader(bytes.NewReader(zipped.ok(t)))
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(unzipped, plain.ok(t)) || plain.Header.Get("ETag") == zipped.Header.Get("ETag") {
		t.Error("the forms differ, or have one tag")
	}
}

// rule: R291
func TestAChangeIsAnotherTag(t *testing.T) {
	c := bigCluster(t)
	tag := newReplica(t, c, "").live().Header.Get("ETag")
	if again := newReplica(t, c, "").live("If-None-Match", tag); again.StatusCode != http.StatusNotModified {
		t.Errorf("nothing changed: status %d", again.StatusCode)
	}
	c.addRuns(shopNS + "/new")
	got := newReplica(t, c, "").live("If-None-Match", tag)
	if !strings.Contains(string(got.ok(t)), `"new"`) || got.Header.Get("ETag") == tag {
		t.Error("a change keeps the tag")
	}
}

// TestReplicasGiveTheSameBytes: whether a replica read the cluster itself or
// took what another read.
//
// rule: R290
func TestReplicasGiveTheSameBytes(t *testing.T) {
	c := bigCluster(t)
	// More than fits into one piece of a list.
	for i := range 3 {
		c.put("pipelineruns", object{namespace: shopNS, name: fmt.Sprintf("large-%d", i), spec: fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", 600<<10))})
	}
	m := miniredis.RunT(t)
	url := "redis://" + m.Addr()
	writer := newReplica(t, c, url)
	alone := newReplica(t, c, "")
	for name, call := range requests {
		for _, accept := range []string{"identity", "gzip"} {
			t.Run(name+" as "+accept, func(t *testing.T) {
				get := func(p *replica) response {
					return p.do(p.request(call.target, claims(call.op, aboutShop), "Accept-Encoding", accept))
				}
				first := get(writer)
				eventually(t, "the lists in Redis", func() bool { return len(m.Keys()) >= 1 && !anyLock(m) })
				before := c.total()
				reader := newReplica(t, c, url)
				second := get(reader)
				if c.total() != before {
					t.Error("the second replica read the cluster itself")
				}
				third := get(alone)
				for who, other := range map[string]response{"that took it from Redis": second, "on its own": third} {
					if !bytes.Equal(other.ok(t), first.ok(t)) || other.Header.Get("ETag") != first.Header.Get("ETag") {
						t.Errorf("a replica %s answers %d bytes with %s, not %d with %s", who,
							len(other.body), other.Header.Get("ETag"), len(first.body), first.Header.Get("ETag"))
					}
				}
			})
		}
	}
}

func anyLock(m *miniredis.Miniredis) bool {
	for _, k := range m.Keys() {
		if strings.HasSuffix(k, ":fill") {
			return true
		}
	}
	return false
}

// total is how many lists were begun.
func (c *cluster) total() int {
	n := 0
	for _, count := range c.lists() {
		n += count
	}
	return n
}

func TestTheTagComesAfterTheIdentity(t *testing.T) {
	p := newReplica(t, bigCluster(t), "")
	tag := p.live().Header.Get("ETag")
	r := p.request("/v1/apps/shop/live", claims("listLive", about("other", "app-other-cicd", "uid")), "If-None-Match", tag)
	if got := p.do(r); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", got.StatusCode)
	}
	r = p.request("/v1/live?limit=0", claims("listLiveRuns"), "If-None-Match", "*")
	if got := p.do(r); got.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d: a parameter's fault comes before the tag", got.StatusCode)
	}
}
