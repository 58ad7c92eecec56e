package livehub

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/problem"
)

// rule: R013, R239
func TestListLiveIsWhatTheNamespaceHolds(t *testing.T) {
	c := newCluster(t)
	run := object{namespace: shopNS, name: "build-1", spec: `{"params":[{"name":"n","value":"\u003c1.50e+02"}],"big":12345678901234567890}`}
	task := object{namespace: shopNS, name: "build-1-unit", run: "build-1", spec: `{"retries":1}`}
	c.put("pipelineruns", run)
	c.put("taskruns", task)
	c.addRuns(shopNS+"/build-0", "app-other-cicd/build-1", "app-shop-cicd-x/build-1")
	c.addTasks("build-1", "app-other-cicd/build-1-unit")

	got := string(newReplica(t, c, "").live().ok(t))
	other := object{namespace: shopNS, name: "build-0", spec: "{}"}
	want := `{"pipelineRuns":[` + other.json("pipelineruns", false) + "," + run.json("pipelineruns", false) +
		`],"taskRuns":[` + task.json("taskruns", false) + `]}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestListLiveOfAnEmptyNamespaceHasEmptyLists(t *testing.T) {
	if got := string(newReplica(t, newCluster(t), "").live().ok(t)); got != `{"pipelineRuns":[],"taskRuns":[]}` {
		t.Errorf("got %s", got)
	}
}

// rule: R241
func TestViewersShareOneListOfEachKind(t *testing.T) {
	c := newCluster(t)
	c.addRuns(shopNS + "/a")
	p := newReplica(t, c, "")
	var viewers sync.WaitGroup
	for range 20 {
		viewers.Go(func() { p.live().ok(t) })
	}
	viewers.Wait()
	// The fleet's view of one app is the same list.
	p.do(p.request("/v1/live?app=shop", claims("listLiveRuns", aboutShop))).ok(t)
	if got := c.lists(); got[shopNS+"/pipelineruns"] != 1 || got[shopNS+"/taskruns"] != 1 || len(got) != 2 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

// rule: R241
func TestAChangeShowsWithinTwoSeconds(t *testing.T) {
	keys := newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		p := replicaOf(t, keys, testConfig, listerFunc(func(context.Context, kubelist.Query) (*kubelist.List, error) {
			time.Sleep(100 * time.Millisecond) // how long the cluster takes
			reads.Add(1)
			return kubelist.Decode(new(kubelist.List).Encode())
		}))
		p.server.hub.maxAge = maxAge
		began := time.Now()
		for _, tc := range []struct {
			at    time.Duration
			reads int32 // of two lists each
		}{
			{0, 2}, {100 * time.Millisecond, 2}, {1999 * time.Millisecond, 2}, {2001 * time.Millisecond, 4}, {4 * time.Second, 4}, {9 * time.Second, 6},
		} {
			time.Sleep(tc.at - time.Since(began))
			p.live().ok(t)
			if got := reads.Load(); got != tc.reads {
				t.Errorf("a call after %s makes it %d reads, want %d", tc.at, got, tc.reads)
			}
		}
	})
}

type listerFunc func(context.Context, kubelist.Query) (*kubelist.List, error)

func (f listerFunc) List(ctx context.Context, q kubelist.Query) (*kubelist.List, error) {
	return f(ctx, q)
}

func (f listerFunc) Version(context.Context, kubelist.Query) (string, error) {
	return "", errors.New("nobody asks here")
}

func (f listerFunc) Watch(context.Context, kubelist.Query, kubelist.WatchFrom) (*kubelist.Watch, error) {
	return nil, errors.New("nobody watches here")
}

func TestAnAppThatIsMadeAgainInheritsNothing(t *testing.T) {
	c := newCluster(t)
	c.addRuns(shopNS + "/of-the-first")
	p := newReplica(t, c, "")
	p.live().ok(t)
	c.remove("pipelineruns", shopNS+"/of-the-first")
	again := claims("listLive", about(shop, shopNS, "uid-of-the-second"))
	if got := names(t, p.do(p.request("/v1/apps/shop/live", again)).ok(t), "pipelineRuns"); len(got) != 0 {
		t.Errorf("the new app shows %v", got)
	}
}

// TestTheScopeComesFromTheIdentityAlone: the path and the query never widen it,
// and an identity that does not fit them is refused.
func TestTheScopeComesFromTheIdentityAlone(t *testing.T) {
	for _, tc := range []struct {
		name, target string
		claims       identity.Claims
	}{
		{"another app in the path", "/v1/apps/other/live", claims("listLive", aboutShop)},
		{"an app's operation without an app", "/v1/apps/shop/live", claims("listLive")},
		{"an app without the UID of its namespace", "/v1/apps/shop/live", claims("listLive", about(shop, shopNS, ""))},
		{"a fleet's call with an app that the identity lacks", "/v1/live?app=shop", claims("listLiveRuns")},
		{"a fleet's call without the app of the identity", "/v1/live", claims("listLiveRuns", aboutShop)},
		{"a fleet's call with another app", "/v1/live?app=other", claims("listLiveRuns", aboutShop)},
		{"a fleet's call with an empty app", "/v1/live?app=", claims("listLiveRuns")},
		{"a fleet's call with an app without UID", "/v1/live?app=shop", claims("listLiveRuns", about(shop, shopNS, ""))},
		{"TaskRuns of another app", "/v1/live/taskruns?app=other&pipelineRuns=a", claims("listLiveTaskRuns", aboutShop)},
		{"TaskRuns of no run of another app", "/v1/live/taskruns?app=other", claims("listLiveTaskRuns", aboutShop)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			p := newReplica(t, c, "")
			p.do(p.request(tc.target, tc.claims)).expectProblem(t, problem.EdgeUnauthorized)
			if got := c.lists(); len(got) != 0 {
				t.Errorf("the cluster was asked for %v", got)
			}
		})
	}
}

func TestAnAnswerOfASnapshotIsBuiltOnceAndOnlySoManyAreKept(t *testing.T) {
	s := newSnapshot(nil)
	built := 0
	get := func(f form) *answer.Answer {
		a, err := s.answer(f, func() (*answer.Answer, error) {
			built++
			return answer.New(nil), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if get(form{op: "a"}) != get(form{op: "a"}) || built != 1 {
		t.Errorf("one answer was built %d times", built)
	}
	for _, other := range []form{{op: "b"}, {op: "a", limit: 1}, {op: "a", after: "x"}, {op: "a", with: s}} {
		if get(other) == get(form{op: "a"}) {
			t.Errorf("%+v is another answer", other)
		}
	}
	for i := range 2 * maxAnswers {
		get(form{op: "page", limit: i})
	}
	if len(s.answers) != maxAnswers {
		t.Errorf("%d answers are kept, want %d", len(s.answers), maxAnswers)
	}
	broken := errors.New("broken")
	if a, err := s.answer(form{op: "c"}, func() (*answer.Answer, error) { return nil, broken }); a != nil || !errors.Is(err, broken) {
		t.Errorf("got %v, %v", a, err)
	}
}

func TestAnAnswerOfTwoListsFollowsBoth(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	p.live().ok(t)
	c.addTasks("a", shopNS+"/new")
	// The TaskRuns are read again while the PipelineRuns are kept. What is read
	// for a caller that takes nothing old is itself not kept.
	_, err := p.server.hub.cache.Get(t.Context(), "taskruns:"+shopUID, 0, func(context.Context) (*snapshot, error) {
		l, err := kubelist.Decode(new(kubelist.List).Encode())
		return newSnapshot(l), err
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new TaskRun", func() bool { return strings.Contains(string(p.live().ok(t)), `"new"`) })
	if got := c.lists(); got[shopNS+"/pipelineruns"] != 1 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

func TestACallWithoutAnIdentityInItsContextIsRefused(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := calls.FleetScope(r); err == nil || s != (calls.Scope{}) {
		t.Errorf("the fleet is shown: %v", err)
	}
	if _, err := calls.AppScope(r, shop); err == nil {
		t.Error("an app is shown")
	}
}
