package livehub

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

const logPath = "/v1/apps/shop/live/taskruns/task/logs/step-a"

func (p *replica) log(target string, change ...func(*identity.Claims)) response {
	p.t.Helper()
	return p.do(p.request(target, claims("getLiveLogs", append([]func(*identity.Claims){aboutShop}, change...)...)))
}

func TestALogIsPlainTextThatNobodyKeeps(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	got := p.log(logPath)
	if string(got.ok(t)) != aLine {
		t.Errorf("got %q", got.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "ETag": "", "Last-Modified": "",
	} {
		if v := got.Header.Get(name); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// rule: R395
func TestNamesAndParametersThatAreNone(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	for name, target := range map[string]string{
		"a TaskRun in upper case":   strings.Replace(logPath, "/task/", "/Task/", 1),
		"a TaskRun of 64":           strings.Replace(logPath, "/task/", "/"+strings.Repeat("a", 64)+"/", 1),
		"a TaskRun with dots":       strings.Replace(logPath, "/task/", "/a..b/", 1),
		"a container with a dot":    logPath + ".b",
		"a container in upper case": logPath + "B",
		"a container of 64":         strings.Replace(logPath, "step-a", strings.Repeat("a", 64), 1),
		"a container with a hyphen": logPath + "-",
		"follow as a word":          logPath + "?follow=yes",
		"follow as a number":        logPath + "?follow=1",
		"follow in another case":    logPath + "?follow=True",
		"follow without a value":    logPath + "?follow",
		"an empty follow":           logPath + "?follow=",
		"follow twice":              logPath + "?follow=true&follow=true",
		"a malformed query":         logPath + "?follow=%zz",
	} {
		t.Run(name, func(t *testing.T) {
			got := p.log(target).expectProblem(t, problem.BadRequest)
			if strings.Contains(name, "follow") && name != "follow twice" && got.Message != "follow is neither true nor false" {
				t.Errorf("it says %q", got.Message)
			}
		})
	}
	if asked := c.node.requests(); len(asked) != 0 {
		t.Errorf("the cluster was asked for %v", asked)
	}
	p.log(logPath + "?follow=false&pod=other&namespace=other&container=step-b&tailLines=0&previous=true").ok(t)
	for _, path := range c.node.requests() {
		if !strings.Contains(path, "/namespaces/"+shopNS+"/") || strings.Contains(path, "other") {
			t.Errorf("the cluster was asked for %s", path)
		}
	}
}

func TestALogOfAnotherAppsIdentityIsRefused(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	p.log(logPath, about("gate-api", "app-gate-api-cicd", "u")).expectProblem(t, problem.EdgeUnauthorized)
	if asked := c.node.requests(); len(asked) != 0 {
		t.Errorf("the cluster was asked for %v", asked)
	}
}

func TestWhyThereIsNoLogIsSaidWithoutWhatTheClusterSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		log    func(q url.Values, w http.ResponseWriter, r *http.Request)
		want   problem.Rule
		hint   string
	}{
		"no such TaskRun":             {strings.Replace(logPath, "/task/", "/other/", 1), nil, problem.LiveNotFound, "archived"},
		"no such container":           {strings.Replace(logPath, "step-a", "a", 1), nil, problem.BadRequest, "step-<step>"},
		"a container that waits":      {strings.Replace(logPath, "step-a", "step-b", 1), nil, problem.BadRequest, "once it runs"},
		"a node that lost it":         {logPath, says(200, "unable to retrieve container logs for secret"), problem.SourceFailed, ""},
		"a node that is away":         {logPath, says(500, "Get https://10.0.0.7:10250/secret: connection refused"), problem.SourceFailed, ""},
		"a node that forgot the pod":  {logPath, says(404, "secret"), problem.LiveNotFound, "archived"},
		"a container that just waits": {logPath, says(400, "secret"), problem.BadRequest, "once it runs"},
		"a log that is cut at once": {logPath, func(q url.Values, w http.ResponseWriter, _ *http.Request) {
			if q.Has("tailLines") {
				_, _ = io.WriteString(w, aLine)
			}
		}, problem.SourceFailed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			p := newReplica(t, c, "")
			if tc.log != nil {
				c.node.writes(tc.log)
			}
			got := p.log(tc.target)
			b := got.expectProblem(t, tc.want)
			if strings.Contains(string(got.body), "secret") || !strings.Contains(b.Hint, tc.hint) {
				t.Errorf("got %s", got.body)
			}
		})
	}
}

func says(status int, text string) func(url.Values, http.ResponseWriter, *http.Request) {
	return func(_ url.Values, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

// served serves a replica's operations over a connection, with an identity for
// the log.
func (p *replica) served(t *testing.T) (client *http.Client, target string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header = p.request(logPath, claims("getLiveLogs", aboutShop)).Header
		p.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Client(), server.URL + logPath
}

// open begins to read the log.
func open(ctx context.Context, t *testing.T, client *http.Client, target string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func TestAFollowedLogComesLineByLineAndEndsWithItsContainer(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	more := make(chan string)
	c.node.writes(func(q url.Values, w http.ResponseWriter, _ *http.Request) {
		if q.Has("tailLines") {
			return
		}
		_ = http.NewResponseController(w).Flush()
		for text := range more {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		}
		c.node.is(done)
	})
	client, target := p.served(t)
	resp := open(t.Context(), t, client, target+"?follow=true") // there before any line is
	lines := bufio.NewReader(resp.Body)
	for range 3 {
		more <- aLine
		if got, err := lines.ReadString('\n'); err != nil || got != aLine {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	close(more)
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

func TestAFollowedLogEndsWithItsReplicaAndDoesNotLookWhole(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	c.node.writes(func(q url.Values, w http.ResponseWriter, r *http.Request) {
		if !q.Has("tailLines") {
			_, _ = io.WriteString(w, aLine)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	client, target := p.served(t)
	lines := bufio.NewReader(open(t.Context(), t, client, target+"?follow=true").Body)
	if got, err := lines.ReadString('\n'); err != nil || got != aLine {
		t.Fatalf("got %q, %v", got, err)
	}
	p.server.live.drain()
	if rest, err := io.ReadAll(lines); err == nil {
		t.Errorf("it ends well, with %q", rest)
	}
}

func TestACutLogNeverLooksWhole(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	c.node.writes(func(q url.Values, w http.ResponseWriter, _ *http.Request) {
		if q.Has("tailLines") {
			_, _ = io.WriteString(w, strings.Replace(aLine, "00.1", "00.9", 1))
			return
		}
		_, _ = io.WriteString(w, aLine)
	})
	client, target := p.served(t)
	if got, err := io.ReadAll(open(t.Context(), t, client, target).Body); err == nil || string(got) != aLine {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAReplicaSendsALimitedNumberOfLogs(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "", func(cfg *Config) { cfg.MaxLogs = 2 })
	c.node.writes(func(q url.Values, w http.ResponseWriter, r *http.Request) {
		if !q.Has("tailLines") {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	client, target := p.served(t)
	ctx, leave := context.WithCancel(t.Context())
	for range 2 {
		open(ctx, t, client, target+"?follow=true")
	}
	b := p.log(logPath).expectProblem(t, problem.Busy)
	if b.Hint == "" || strings.Contains(b.Message, "stream") {
		t.Errorf("got %+v", b)
	}
	leave()
	// Those that left make room, and their reading ends.
	c.node.writes(says(200, aLine))
	eventually(t, "room for a log", func() bool { return p.log(logPath).StatusCode == http.StatusOK })
	eventually(t, "the end of the calls", func() bool { return p.underWay.Load() == 0 })
}

func TestACallerThatTakesNothingIsLeft(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "", func(cfg *Config) { cfg.LogStall = 300 * time.Millisecond })
	left := make(chan struct{})
	piece := strings.Repeat(aLine, 1000)
	c.node.writes(func(q url.Values, w http.ResponseWriter, _ *http.Request) {
		if q.Has("tailLines") {
			return
		}
		defer close(left)
		for {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	})
	client, target := p.served(t)
	resp := open(t.Context(), t, client, target)
	<-left
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("what it took in the end looks whole")
	}
}
