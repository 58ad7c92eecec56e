package results_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	standin "hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/services/runs/results"
)

const (
	shop   = "app-shop-cicd"
	secret = "hunter2" // stands in what answers hold
)

// aDayOf archives runs 0 to n-1, one an hour, newest first.
func aDayOf(t *testing.T, n int) archive {
	t.Helper()
	a := newArchive(t, standin.Config{})
	for i := range n {
		a.run(shop, i, now.Add(-time.Duration(i)*time.Hour))
	}
	return a
}

// small has the 12 runs of a test come in three pages.
var small = results.Limits{PageRecords: 5}

// Each fault ends the list with an error that names the source and quotes nothing,
// or is overcome; what is given out in either case is the beginning of the list.
func TestWhatFailsWhileAListIsRead(t *testing.T) {
	t.Parallel()
	const runs = 12
	for name, tt := range map[string]struct {
		faults []standin.Fault
		limits results.Limits
		fails  bool
		status int // of the error
		asked  int // requests, where they are all of one kind
	}{
		"a refusal of the right to read":      {faults: []standin.Fault{{Status: 401, Body: secret}}, fails: true, status: 401, asked: 1},
		"a wrong filter":                      {faults: []standin.Fault{{Status: 400, Body: secret}}, fails: true, status: 400, asked: 1},
		"a relay that leads nowhere":          {faults: []standin.Fault{{Status: 404, Body: secret}}, fails: true, status: 404, asked: 1},
		"a redirect":                          {faults: []standin.Fault{{Status: 302, Body: secret}}, fails: true, status: 302, asked: 1},
		"a relay whose server is away":        {faults: []standin.Fault{{Status: 502, Body: "<html>" + secret}}, fails: true, status: 502, asked: 3},
		"away for two attempts":               {faults: []standin.Fault{{Status: 503, Times: 2}}, asked: 5},
		"an internal error, once":             {faults: []standin.Fault{{Status: 500, Times: 1}}, asked: 4},
		"a page that is HTML":                 {faults: []standin.Fault{{Status: 200, Body: "<html>" + secret}}, fails: true, status: 200, asked: 3},
		"an error that comes as 200":          {faults: []standin.Fault{{Status: 200, Body: `{"code":13,"message":"` + secret + `"}`}}, fails: true, status: 200, asked: 3},
		"a list of another shape":             {faults: []standin.Fault{{Status: 200, Body: `{"records":"` + secret + `"}`}}, fails: true, status: 200, asked: 3},
		"more behind the end":                 {faults: []standin.Fault{{Status: 200, Body: `{"next_page_token":"x"}{"a":"` + secret + `"}`}}, fails: true, status: 200, asked: 3},
		"half a page":                         {faults: []standin.Fault{{Status: 200, Body: `{"records":[{"name":"` + secret}}, fails: true, status: 200, asked: 3},
		"cut in the middle, always":           {faults: []standin.Fault{{Cut: 2000}}, fails: true, status: 200, asked: 3},
		"cut in the middle of the first page": {faults: []standin.Fault{{Cut: 2000, Times: 1}}, asked: 4},
		"cut in the middle of the last page":  {faults: []standin.Fault{{Skip: 2, Cut: 700, Times: 1}}, asked: 4},
		"the second page fails":               {faults: []standin.Fault{{Skip: 1, Status: 500}}, fails: true, status: 500, asked: 4},
		"the second page comes empty, once":   {faults: []standin.Fault{{Skip: 1, Empty: true, Times: 1}}, asked: 4},
		"every page but the first is empty":   {faults: []standin.Fault{{Path: "page_token", Empty: true}}, fails: true, status: 200, asked: 5},
		"all comes empty from the second on":  {faults: []standin.Fault{{Skip: 1, Empty: true}}, fails: true, status: 200, asked: 5},
		"pages that go in a circle":           {faults: []standin.Fault{{Path: "page_token", Loop: "CgEtGiYKJDA"}}, fails: true, asked: 3},
		"a page that names itself":            {faults: []standin.Fault{{Loop: "CgEtGiYKJDA"}}, fails: true, asked: 2},
		"an answer that stops":                {faults: []standin.Fault{{Hang: 500}}, limits: results.Limits{Stall: 50 * time.Millisecond, Attempts: 2}, fails: true, status: 200, asked: 2},
		"an answer that never begins":         {faults: []standin.Fault{{Delay: time.Hour}}, limits: results.Limits{Time: 50 * time.Millisecond}, fails: true},
		"a page that is too large":            {limits: results.Limits{PageBytes: 3000}, fails: true, status: 200, asked: 1},
		"more records than are read":          {limits: results.Limits{Records: 7}, fails: true, status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := aDayOf(t, runs)
			a.SetFaults(tt.faults...)
			tt.limits.PageRecords = small.PageRecords
			got, err := uids(a.client(tt.limits).PipelineRuns(t.Context(), shop, now.Add(-runs*time.Hour)))
			all := want(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
			if !tt.fails {
				if err != nil || !slices.Equal(got, all) {
					t.Errorf("got %v, %v", got, err)
				}
			} else {
				checkFailure(t, err, tt.status)
				if len(got) >= runs || !slices.Equal(got, all[:len(got)]) {
					t.Errorf("before the error came %v", got)
				}
			}
			if n := len(a.Requests()); tt.asked != 0 && n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
		})
	}
}

// checkFailure checks what an error says; status 0 is any.
func checkFailure(t *testing.T, err error, status int) {
	t.Helper()
	failure, ok := errors.AsType[*results.Error](err)
	if !ok {
		t.Fatalf("got %v, want a failure of Results", err)
	}
	if status != 0 && failure.Status != status {
		t.Errorf("status %d in %v, want %d", failure.Status, err, status)
	}
	for _, part := range []string{secret, "http://", "filter", "data_type"} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("%q says %q", err, part)
		}
	}
	if !strings.HasPrefix(err.Error(), "Tekton Results: ") {
		t.Errorf("%q does not name the source", err)
	}
}

func TestAServerThatIsAway(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 1)
	c := a.client(small)
	a.Stop()
	_, err := uids(c.PipelineRuns(t.Context(), shop, now.Add(-time.Hour)))
	checkFailure(t, err, 0)
	_, err = c.PipelineRun(t.Context(), shop, uid(0))
	checkFailure(t, err, 0)
	_, err = c.Log(t.Context(), shop, uid(0), uid(1))
	checkFailure(t, err, 0)
}

func TestACallerThatLeavesEndsTheReading(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 12)
	ctx, cancel := context.WithCancel(t.Context())
	a.SetFaults(standin.Fault{Skip: 1, Before: cancel, Delay: time.Hour})
	_, err := uids(a.client(small).PipelineRuns(ctx, shop, now.Add(-12*time.Hour)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := len(a.Requests()); n != 2 {
		t.Errorf("%d requests were made, the last ones for nobody", n)
	}
}

func TestAListThatChangesWhileItIsPaged(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 12)
	a.SetFaults(standin.Fault{Skip: 1, Times: 1, Before: func() {
		a.run(shop, 50, now)                     // a new one
		a.run(shop, 1, now.Add(-time.Hour))      // one that was given out is stored again
		a.DeleteRecord(shop, uid(4), uid(4))     // the one at the end of the page
		a.DeleteRecord(shop, uid(7), uid(7))     // one to come
		a.run(shop, 60, now.Add(-9*time.Hour-1)) // one among those to come
	}})
	check(t, a.client(small).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)), 0, 1, 2, 3, 4, 5, 6, 8, 9, 60, 10, 11)
}

// What is behind a page may be deleted before it is read. The page before it says
// so when it is asked for again.
func TestTheLastPageIsDeletedWhileAListIsPaged(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deleted, want []int
		asked         int
	}{
		"all that it had":           {[]int{10, 11}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3 + 2 + 1},
		"and one of those before":   {[]int{9, 10, 11}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3 + 2 + 1}, // it was read already
		"all that two of them had":  {[]int{5, 6, 7, 8, 9, 10, 11}, nil, 0},
		"all, and a new one begins": {[]int{10, 11}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3 + 2 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := aDayOf(t, 12)
			a.SetFaults(standin.Fault{Skip: 2, Times: 1, Before: func() {
				for _, n := range tt.deleted {
					a.DeleteRecord(shop, uid(n), uid(n))
				}
				if strings.Contains(name, "new") {
					a.run(shop, 50, now)
				}
			}})
			list := a.client(small).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour))
			if tt.want == nil {
				_, err := uids(list)
				checkFailure(t, err, http.StatusOK) // the next call reads it whole
				check(t, a.client(small).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)), 0, 1, 2, 3, 4)
				return
			}
			check(t, list, tt.want...)
			if n := len(a.Requests()); n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
		})
	}
}

// Whoever wants them in the order of their creation has to know.
func TestRecordsSayWhenTheyWereStored(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 12)
	late := now.Add(-8*time.Hour - 30*time.Minute)
	a.record(20, late, fmt.Sprintf(`{"kind":"PipelineRun","metadata":{"namespace":%q,"uid":%q,"creationTimestamp":%q}}`, shop, uid(20), late.Format(time.RFC3339)), now)
	stored := map[string]time.Time{}
	for r, err := range a.client(small).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		if len(stored) == 1 && r.UID != uid(20) {
			t.Errorf("%s comes before what was stored after it", r.UID)
		}
		stored[r.UID] = r.Stored
	}
	const soon = 2 * time.Second // as the stand-in stores them
	if len(stored) != 13 || !stored[uid(20)].Equal(now) || !stored[uid(0)].Equal(now.Add(soon)) || !stored[uid(5)].Equal(now.Add(soon-5*time.Hour)) {
		t.Errorf("got %v", stored)
	}
}

// record stores a value as that of run n.
func (a archive) record(n int, created time.Time, value string, stored time.Time) {
	a.t.Helper()
	err := a.PutRecord(standin.Record{Parent: shop, Result: uid(n), Name: uid(n), Type: "tekton.dev/v1.PipelineRun", Value: []byte(value), Created: stored})
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestPagesThatAreTooLargeToSendAreAskedForInParts(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 12)
	a.SetFaults(standin.Fault{Path: "page_size=40", Status: http.StatusTooManyRequests})
	check(t, a.client(results.Limits{PageRecords: 40}).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	a.SetFaults(standin.Fault{Status: http.StatusTooManyRequests})
	_, err := uids(a.client(results.Limits{PageRecords: 40}).PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)))
	checkFailure(t, err, http.StatusTooManyRequests)
}

// Where a few records are many times larger than the others, those behind them are
// not read five at a time.
func TestAPageThatShrankGrowsAgain(t *testing.T) {
	t.Parallel()
	const runs = 200
	a := aDayOf(t, runs)
	a.SetFaults(standin.Fault{Path: "page_size=40", Times: 2, Status: http.StatusTooManyRequests})
	got, err := uids(a.client(results.Limits{PageRecords: 40}).PipelineRuns(t.Context(), shop, now.Add(-runs*time.Hour)))
	if err != nil || len(got) != runs {
		t.Errorf("%d runs, %v", len(got), err)
	}
	var sizes []string
	for _, r := range a.Requests() {
		u, err := url.Parse(r.URI)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, u.Query().Get("page_size"))
	}
	// Too large, two that go well, twice that, too large again, and the next time later.
	want := []string{"40", "10", "10", "20", "20", "40", "10", "10", "10", "10", "20", "20", "20", "20", "40"}
	if !slices.Equal(sizes, want) {
		t.Errorf("pages of %v were asked for, want %v", sizes, want)
	}
}

// A record that is not what it should be is an error of its own. Those around it
// are read.
func TestABadRecord(t *testing.T) {
	t.Parallel()
	good := fmt.Sprintf(`{"kind":"PipelineRun","metadata":{"namespace":%q,"uid":%q,"creationTimestamp":%q}}`, shop, uid(5), now.Add(-time.Hour).Format(time.RFC3339))
	const pipelineRun = "tekton.dev/v1.PipelineRun"
	for name, tt := range map[string]struct {
		rec  standin.Record
		says string
	}{
		"a value that is not JSON":           {standin.Record{Type: pipelineRun, Value: []byte("{" + secret)}, "not the JSON"},
		"a value that is no object":          {standin.Record{Type: pipelineRun, Value: []byte(`"` + secret + `"`)}, "not the JSON"},
		"no value":                           {standin.Record{Type: pipelineRun}, "not base64"},
		"a value that is not base64":         {standin.Record{Type: pipelineRun, Base64: secret + "!"}, "not base64"},
		"a value that is not UTF-8":          {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "app-shop", "\xff", 1))}, "not the JSON"},
		"a record of another type":           {standin.Record{Type: "results.tekton.dev/v1alpha3.Log", Value: []byte(good)}, "another type"},
		"a value of another kind":            {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "Pipeline", "Task", 1))}, "another kind"},
		"an object of another namespace":     {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "shop", "gate", 1))}, "another namespace"},
		"an object without uid":              {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "uid", "no", 1))}, "no uid"},
		"an object without time of creation": {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "creationTimestamp", "no", 1))}, "no time of creation"},
		"a time of creation that is none":    {standin.Record{Type: pipelineRun, Value: []byte(strings.Replace(good, "Timestamp\":\"20", "Timestamp\":\"x", 1))}, "not the JSON"},
		"a value of 20 MB":                   {standin.Record{Type: pipelineRun, Value: []byte(`{"x":"` + strings.Repeat(secret, 3_000_000) + `",` + good[1:])}, "larger than what is read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t, standin.Config{})
			a.run(shop, 1, now)
			a.run(shop, 2, now.Add(-2*time.Hour))
			tt.rec.Parent, tt.rec.Result, tt.rec.Name, tt.rec.Created = shop, uid(5), uid(5), now.Add(-time.Hour)
			if err := a.PutRecord(tt.rec); err != nil {
				t.Fatal(err)
			}
			// No filter finds what has no time, so this asks for all of a Result.
			a.SetFaults(standin.Fault{Unfiltered: true})
			var got []string
			bad := 0
			for r, err := range a.client(results.Limits{}).PipelineRuns(t.Context(), shop, now.Add(-24*time.Hour)) {
				switch {
				case err == nil:
					got = append(got, r.UID)
				case !errors.Is(err, results.ErrBadRecord) || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), secret):
					t.Errorf("got %v", err)
				default:
					bad++
				}
			}
			if !slices.Equal(got, want(1, 2)) || bad != 1 {
				t.Errorf("got %v and %d bad ones", got, bad)
			}
		})
	}
}

func TestABadRecordAskedForByItself(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	a.record(1, now, "{"+secret, now)
	_, err := a.client(results.Limits{}).PipelineRun(t.Context(), shop, uid(1))
	if !errors.Is(err, results.ErrBadRecord) || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

// A server that does not apply the filter, or gives more of what is around, says
// nothing of a namespace or a time that was not asked for.
func TestAServerIsHeldToTheFilter(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 12)
	a.SetFaults(standin.Fault{Unfiltered: true})
	check(t, a.client(results.Limits{}).PipelineRuns(t.Context(), shop, now.Add(-2*time.Hour)), 0, 1, 2)
	other := aDayOf(t, 1)
	body := fmt.Sprintf(`{"records":[{"name":"app-gate-cicd/results/%[1]s/records/%[1]s","data":{"type":"tekton.dev/v1.PipelineRun","value":"e30="}}]}`, uid(1))
	other.SetFaults(standin.Fault{Status: http.StatusOK, Body: body})
	_, err := uids(other.client(results.Limits{}).PipelineRuns(t.Context(), shop, now))
	if !errors.Is(err, results.ErrBadRecord) || !strings.Contains(err.Error(), "another namespace") || strings.Contains(err.Error(), "gate") {
		t.Errorf("got %v", err)
	}
}

func TestARunThatIsNotUnderItsUID(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	object := func(n int, metadata string) string {
		return fmt.Sprintf(`{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"name":"run","namespace":%q,"uid":%q,"creationTimestamp":%q,%s}}`,
			shop, uid(n), now.Format(time.RFC3339), metadata)
	}
	// Two runs of one event share a Result, whose name is the event's.
	a.put(object(1, `"labels":{"triggers.tekton.dev/triggers-eventid":"event-1"}`))
	a.put(object(2, `"labels":{"triggers.tekton.dev/triggers-eventid":"event-1"}`))
	// One that was made again with the annotations of run 3 is stored over it.
	a.run(shop, 3, now.Add(-time.Hour))
	a.put(object(4, fmt.Sprintf(`"annotations":{"results.tekton.dev/result":"%s/results/%s","results.tekton.dev/record":"%[1]s/results/%[2]s/records/%[2]s"}`, shop, uid(3))))
	c := a.client(results.Limits{})
	for n, result := range map[int]string{1: "event-1", 2: "event-1", 4: uid(3)} {
		r, err := c.PipelineRun(t.Context(), shop, uid(n))
		if err != nil || r.UID != uid(n) || r.Result() != result {
			t.Errorf("run %d: got %s of %q, %v", n, r.UID, r.Result(), err)
		}
	}
	if r, err := c.PipelineRun(t.Context(), shop, uid(3)); !errors.Is(err, results.ErrNotFound) {
		t.Errorf("the run whose record was taken: got %s, %v", r.UID, err)
	}
}

// A 404 is proof of absence in Results' own words alone.
func TestARunThatARelayDoesNotFind(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"a relay's page":                "<html>" + secret,
		"a server that lacks the path":  `{"code":5,"message":"Not Found"}`,
		"another code":                  `{"code":7,"message":"record not found"}`,
		"JSON that is no refusal":       `[]`,
		"an error of no particular use": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := aDayOf(t, 1)
			a.SetFaults(standin.Fault{Path: "/records/", Status: http.StatusNotFound, Body: body})
			_, err := a.client(results.Limits{}).PipelineRun(t.Context(), shop, uid(1))
			checkFailure(t, err, http.StatusNotFound)
		})
	}
}

func TestBothDialects(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{OldDialect: true})
	c := a.client(small)
	check(t, c.PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)))
	for n := range 12 {
		a.run(shop, n, now.Add(-time.Duration(n)*time.Hour))
	}
	check(t, c.PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
}

// rule: R039
func TestTheTokenOfTheProcessIsSentAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{Token: secret})
	a.run(shop, 1, now)
	token := secret
	c, err := results.New(results.Config{URL: a.URL() + "/", Transport: a.transport(), Token: func() (string, error) { return token, nil }, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.PipelineRuns(t.Context(), shop, now), 1)
	token = ""
	_, err = uids(c.PipelineRuns(t.Context(), shop, now))
	checkFailure(t, err, http.StatusUnauthorized)
	for _, r := range a.Requests() {
		for name := range r.Header {
			if !slices.Contains([]string{"Authorization", "User-Agent", "Accept-Encoding"}, name) {
				t.Errorf("a request carries %s", name)
			}
		}
	}
	broken, err := results.New(results.Config{URL: a.URL(), Transport: a.transport(), Token: func() (string, error) { return "", io.ErrUnexpectedEOF }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = broken.PipelineRun(t.Context(), shop, uid(1))
	checkFailure(t, err, 0)
}

// A redirect would take the token elsewhere.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	a, other := aDayOf(t, 1), aDayOf(t, 1)
	a.SetFaults(standin.Fault{Status: http.StatusFound, Header: http.Header{"Location": {other.URL() + "/"}}})
	_, err := uids(a.client(results.Limits{}).PipelineRuns(t.Context(), shop, now))
	checkFailure(t, err, http.StatusFound)
	if n := len(other.Requests()); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

func TestAConfigurationThatIsNone(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "results:8080", "ftp://results", "http://user:" + secret + "@results", "http://results?x=1", "http://results#x", "http://%zz" + secret} {
		if _, err := results.New(results.Config{URL: url, Transport: http.NewFileTransport(http.Dir("."))}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q gives %v", url, err)
		}
	}
	if _, err := results.New(results.Config{URL: "http://results"}); err == nil {
		t.Error("no transport is no fault")
	}
}

func TestNamesThatAreNone(t *testing.T) {
	t.Parallel()
	a := aDayOf(t, 1)
	c := a.client(results.Limits{})
	for _, namespace := range []string{"", "a/b", "..", "A", strings.Repeat("a", 64), "a?b"} {
		_, err := uids(c.PipelineRuns(t.Context(), namespace, now))
		checkFailure(t, err, 0)
	}
	for _, result := range []string{"", "-", "a/b", "..", "x?y"} {
		_, err := uids(c.TaskRunsOf(t.Context(), shop, result))
		checkFailure(t, err, 0)
	}
	if n := len(a.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}
