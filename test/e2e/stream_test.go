package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hangar.io/glidepath/internal/sse"
)

// viewer looks at the live stream of an app, and keeps what it has been shown.
type viewer struct {
	base, app string
	changes   []change

	body io.Closer
	*sse.Reader
	header http.Header
	shown  map[string]object // by kind and name
	// snapshots and connects count.
	snapshots, connects int
	ended               string // the reason of the last end
}

func newViewer(base, app string, changes ...change) *viewer {
	return &viewer{base: base, app: app, changes: changes, shown: map[string]object{}}
}

// streamClient has no timeout of its own: streams stay open.
var streamClient = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// connect opens the stream, where the viewer left off if it has seen any.
func (v *viewer) connect(ctx context.Context, c *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+"/v1/apps/"+v.app+"/live/stream", http.NoBody)
	if err != nil {
		return err
	}
	for _, change := range v.changes {
		change(r)
	}
	if v.Reader != nil && v.LastID() != "" {
		r.Header.Set("Last-Event-ID", v.LastID())
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	v.connects++
	v.body, v.Reader, v.header = resp.Body, sse.NewReader(resp.Body, 64<<20), resp.Header
	return nil
}

// open is connect for a test that cannot do without.
func (v *viewer) open(t *testing.T) *viewer {
	t.Helper()
	if err := v.connect(t.Context(), streamClient); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.body.Close() })
	return v
}

// step takes the next event.
func (v *viewer) step() (sse.Event, error) {
	e, err := v.Next()
	if err != nil {
		return e, err
	}
	switch e.Type {
	case "snapshot":
		var l liveAnswer
		if err := json.Unmarshal(e.Data, &l); err != nil {
			return e, err
		}
		v.snapshots++
		v.shown = map[string]object{}
		for _, o := range l.PipelineRuns {
			v.shown["PipelineRun "+named(o)] = o
		}
		for _, o := range l.TaskRuns {
			v.shown["TaskRun "+named(o)] = o
		}
	case "change":
		var c struct {
			Type, Kind, Name string
			Object           object
		}
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return e, err
		}
		key := c.Kind + " app-" + v.app + "-cicd/" + c.Name
		if c.Type == "delete" {
			delete(v.shown, key)
		} else {
			v.shown[key] = c.Object
		}
	case "end":
		v.ended = string(e.Data)
	}
	return e, nil
}

// next wants an event of a type.
func (v *viewer) next(t *testing.T, kind string) sse.Event {
	t.Helper()
	e, err := v.step()
	if err != nil || e.Type != kind || e.ID == "" {
		t.Fatalf("got %s %q %.200s, %v, want a %s", e.Type, e.ID, e.Data, err, kind)
	}
	return e
}

// inCluster is what the cluster holds of an app, in the form of shown.
func inCluster(t *testing.T, app string) map[string]object {
	t.Helper()
	all := map[string]object{}
	for kind, gvr := range map[string]schema.GroupVersionResource{"PipelineRun": pipelineRuns, "TaskRun": taskRuns} {
		for name, o := range listed(t, gvr, "app-"+app+"-cicd") {
			all[kind+" "+name] = o
		}
	}
	return all
}

// annotate changes an object.
func annotate(t *testing.T, gvr schema.GroupVersionResource, namespace, name, value string) {
	t.Helper()
	patch, err := json.Marshal(object{"metadata": object{"annotations": object{"e2e": value}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster(t).Resource(gvr).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// rule: R248, R249, R250, R251, R254
func TestTheLiveStreamShowsWhatThereIsAndEachChange(t *testing.T) {
	const path, namespace = "/v1/apps/shop/live/stream", "app-shop-cicd"
	refused(t, get(t, path, as("stranger")), 403, "GP-AUTHZ-001")
	refused(t, get(t, path), 401, "GP-AUTH-001")
	v := newViewer(gw.URL, "shop", as("reader")).open(t)
	if got := v.header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the type is %q", got)
	}
	v.next(t, "snapshot")
	if want := inCluster(t, "shop"); !reflect.DeepEqual(v.shown, want) {
		t.Errorf("the snapshot has %d objects, the cluster %d", len(v.shown), len(want))
	}
	create(t, taskRuns, "TaskRun", namespace, "e2e-stream", nil)
	created := v.next(t, "change")
	annotate(t, taskRuns, namespace, "e2e-stream", "moved")
	moved := v.next(t, "change")
	if !reflect.DeepEqual(v.shown, inCluster(t, "shop")) || !strings.HasPrefix(string(moved.Data), `{"type":"upsert","kind":"TaskRun","name":"e2e-stream","object":{`) {
		t.Errorf("after %.200s it is not what the cluster has", moved.Data)
	}
	if err := cluster(t).Resource(taskRuns).Namespace(namespace).Delete(t.Context(), "e2e-stream", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if gone := v.next(t, "change"); string(gone.Data) != `{"type":"delete","kind":"TaskRun","name":"e2e-stream"}` {
		t.Errorf("got %s", gone.Data)
	}
	back := newViewer(gw.URL, "shop", as("reader"), header("Last-Event-ID", created.ID)).open(t)
	if e := back.next(t, "change"); string(e.Data) != string(moved.Data) || e.ID != moved.ID {
		t.Errorf("who comes back gets %s %.200s", e.ID, e.Data)
	}
	back.next(t, "change")
	if back.snapshots != 0 || back.LastID() != v.LastID() {
		t.Errorf("%d snapshots, up to %s", back.snapshots, back.LastID())
	}
	anew := newViewer(gw.URL, "shop", as("reader")).open(t)
	anew.next(t, "snapshot")
	if !reflect.DeepEqual(anew.shown, v.shown) {
		t.Error("what follows from changes is not what a snapshot says")
	}
}

// A viewer that takes nothing is behind by more than the changes that may wait,
// once what the kernel and the edge hold for it is full: some 15 MB. One that takes
// nothing for the half minute of a write is broken off instead, which a slow machine
// may come to first; then there is another try.
//
// rule: R255
func TestAViewerThatTakesNothingIsLeftBehind(t *testing.T) {
	const objects, tries = 4, 4
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var fault error
		err := c.Control(func(fd uintptr) {
			fault = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 16<<10)
		})
		if err != nil {
			return err
		}
		return fault
	}}
	narrow := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableCompression: true}}
	t.Cleanup(narrow.CloseIdleConnections)
	for i := range objects {
		create(t, taskRuns, "TaskRun", "app-shop-cicd", fmt.Sprintf("e2e-large-%d", i), nil)
	}
	for try := 1; !leftBehind(t, narrow, objects); try++ {
		if try == tries {
			t.Fatalf("it was broken off %d times", tries)
		}
		t.Log("it was broken off: the changes took too long")
	}
}

// leftBehind has a viewer take nothing while objects change, and is false when it
// was broken off.
func leftBehind(t *testing.T, narrow *http.Client, objects int) bool {
	t.Helper()
	const large, small = 32, 100 // changes of each object: 25 MB that fill what is on the way, and more than may wait
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	v := newViewer(gw.URL, "shop", as("reader"))
	if err := v.connect(ctx, narrow); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.body.Close() }()
	v.next(t, "snapshot")
	var comments []string
	v.OnComment = func(text string) { comments = append(comments, text) }
	other := newViewer(gw.URL, "shop", as("reader")).open(t)
	other.next(t, "snapshot")
	change := func(times int, value string) {
		var changing sync.WaitGroup
		for i := range objects {
			changing.Go(func() {
				for n := range times {
					annotate(t, taskRuns, "app-shop-cicd", fmt.Sprintf("e2e-large-%d", i), fmt.Sprint(n)+value)
				}
			})
		}
		for range objects * times { // one that reads misses nothing meanwhile
			other.next(t, "change")
		}
		changing.Wait()
	}
	change(large, strings.Repeat("x", 200<<10))
	change(small, "")
	for v.ended == "" {
		if _, err := v.step(); errors.Is(err, io.ErrUnexpectedEOF) {
			return false
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if v.ended != `{"reason":"lagged"}` || len(comments) == 0 || comments[len(comments)-1] != " lagged" {
		t.Errorf("it ends with %s, comments %q", v.ended, comments)
	}
	return true
}
