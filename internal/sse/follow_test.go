package sse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTopic(count, bytes int) *sse.Topic[string] {
	return sse.NewTopic(sse.Limits{Count: count, Bytes: bytes}, func(s string) int { return len(s) })
}

func TestATopicKeepsTheLastMessages(t *testing.T) {
	topic := newTopic(4, 10)
	for i, tc := range []struct {
		publish []string
		kept    []string
	}{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"c", "d", "e"}, []string{"b", "c", "d", "e"}},
		{nil, []string{"b", "c", "d", "e"}},
		{[]string{"1234567"}, []string{"c", "d", "e", "1234567"}},
		{[]string{"12345"}, []string{"12345"}}, // both do not fit
		{[]string{strings.Repeat("x", 11)}, []string{strings.Repeat("x", 11)}},
		{[]string{"y"}, []string{"y"}},
	} {
		topic.Publish(tc.publish...)
		kept, head := topic.Kept()
		if !slices.Equal(kept, tc.kept) || head != topic.Head() {
			t.Errorf("step %d: kept %q, head %d", i, kept, head)
		}
		after, _, complete := topic.After(head - uint64(len(kept)))
		if !complete || !slices.Equal(after, tc.kept) {
			t.Errorf("step %d: after the oldest come %q", i, after)
		}
		if oldest := head - uint64(len(kept)); oldest > 0 {
			if _, _, complete := topic.After(oldest - 1); complete {
				t.Errorf("step %d: what is gone counts as there", i)
			}
		}
	}
}

// reader is a viewer whose line can be held up.
type reader struct {
	*httptest.ResponseRecorder
	gate chan struct{} // a write takes a value of it, unless it is nil

	mu       sync.Mutex
	deadline time.Time
	moved    chan struct{} // closed when the deadline is moved
	got      []string
}

func newReader(gate chan struct{}) *reader {
	return &reader{ResponseRecorder: httptest.NewRecorder(), gate: gate, moved: make(chan struct{})}
}

func (r *reader) SetReadDeadline(time.Time) error { return nil }

func (r *reader) SetWriteDeadline(d time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = d
	close(r.moved)
	r.moved = make(chan struct{})
	return nil
}

func (r *reader) Write(p []byte) (int, error) {
	if r.gate != nil && !r.takes() {
		return 0, errors.New("the deadline has passed")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, string(p))
	return len(p), nil
}

// takes waits for the gate, and says whether it opened before the deadline.
func (r *reader) takes() bool {
	for {
		r.mu.Lock()
		deadline, moved := r.deadline, r.moved
		r.mu.Unlock()
		late := time.NewTimer(time.Until(deadline))
		select {
		case <-r.gate:
			late.Stop()
			return true
		case <-late.C:
			return false
		case <-moved:
			late.Stop()
		}
	}
}

func (r *reader) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.got, "")
}

// follow follows a topic for a reader and gives how that ended.
func follow(ctx context.Context, t *testing.T, topic *sse.Topic[string], r *reader, cursor uint64) <-chan error {
	t.Helper()
	s, err := sse.Open(r, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	f := sse.Follower[string]{
		Topic: topic, Cursor: cursor, Behind: 256, Every: 15 * time.Second,
		Frame: func(m string) []byte {
			if m == "skip" {
				return nil
			}
			return []byte(m + "\n")
		},
		Ping: func() []byte { return []byte(": ping\n") },
	}
	done := make(chan error, 1)
	go func() { done <- f.Follow(ctx, s) }()
	return done
}

var errOver = errors.New("over")

func TestAFollowerGetsEachMessageInOrderAndEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		topic, r := newTopic(1000, 1<<20), newReader(nil)
		topic.Publish("a", "skip", "b")
		done := follow(ctx, t, topic, r, 0)
		synctest.Wait()
		topic.Publish("skip")
		topic.Publish("c")
		synctest.Wait()
		if got := r.all(); got != "a\nb\nc\n" {
			t.Errorf("got %q", got)
		}
		time.Sleep(46 * time.Second)
		if got := r.all(); got != "a\nb\nc\n"+strings.Repeat(": ping\n", 3) {
			t.Errorf("idle for 46 s it got %q", got)
		}
		cancel(errOver)
		if err := <-done; !errors.Is(err, errOver) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestWhoFallsBehindIsToldAndWhoComesBackIsNot(t *testing.T) {
	many := func(topic *sse.Topic[string], n int) {
		for i := range n {
			topic.Publish(fmt.Sprint(i))
		}
	}
	for name, tc := range map[string]struct {
		before, during int
		kept           int
		lagged         bool
	}{
		"one less than may gather":                            {0, 1 + 255, 4096, false},
		"as many as may not":                                  {0, 1 + 256, 4096, true},
		"many that were there before":                         {2000, 0, 4096, false},
		"many that came while it was sent what was before":    {2000, 2000, 4096, false},
		"more than is kept while it was sent what was before": {2000, 2500, 2048, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				topic, r := newTopic(tc.kept, 1<<20), newReader(make(chan struct{}))
				many(topic, tc.before)
				done := follow(ctx, t, topic, r, 0)
				synctest.Wait()
				if tc.before == 0 {
					topic.Publish("first") // it is at this one while the others come
					synctest.Wait()
					many(topic, tc.during-1)
				} else {
					many(topic, tc.during)
				}
				close(r.gate)
				synctest.Wait()
				cancel(errOver)
				if err := <-done; errors.Is(err, sse.ErrLagged) != tc.lagged {
					t.Errorf("it ended with %v", err)
				}
			})
		})
	}
}

func TestAReaderThatStandsStillLosesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topic, r := newTopic(10, 1<<20), newReader(make(chan struct{}))
		done := follow(t.Context(), t, topic, r, 0)
		began := time.Now()
		topic.Publish("a")
		if err := <-done; err == nil || errors.Is(err, sse.ErrLagged) || time.Since(began) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestASlowReaderOfALargeEventKeepsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReader(make(chan struct{}))
		s, err := sse.Open(r, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for range 16 { // 64 KiB each 20 s: less in all than one deadline allows
				time.Sleep(20 * time.Second)
				r.gate <- struct{}{}
			}
		}()
		if err := s.Send(make([]byte, 1<<20)); err != nil {
			t.Error(err)
		}
	})
}

func TestAStreamThatEndsWithinALargeEventDoesNotWaitForItsReader(t *testing.T) {
	for name, tc := range map[string]struct {
		every time.Duration // 64 KiB are taken
		want  time.Duration // when it is over
	}{
		"a slow reader":  {20 * time.Second, 35 * time.Second},
		"a quick reader": {4 * time.Second, 32 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				r := newReader(make(chan struct{}))
				s, err := sse.Open(r, 30*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				defer s.EndWith(ctx, 5*time.Second)()
				began, done := time.Now(), make(chan struct{})
				go func() {
					for {
						select {
						case <-time.After(tc.every):
							select {
							case r.gate <- struct{}{}:
							case <-done:
								return
							}
						case <-done:
							return
						}
					}
				}()
				time.AfterFunc(30*time.Second, func() { cancel(errOver) })
				err = s.Send(make([]byte, 20<<20))
				close(done)
				if took := time.Since(began); err == nil || took != tc.want {
					t.Errorf("after %s: %v", took, err)
				}
				before := len(r.all())
				if again := s.Send([]byte("event: end\n\n")); again == nil || len(r.all()) != before {
					t.Errorf("within the event it was sent another: %v", again)
				}
			})
		})
	}
}

// A connection that the answer has left may serve another call.
func TestAnAnswerThatEndedFirstLeavesItsConnectionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newReader(nil)
		s, err := sse.Open(r, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		leave := s.EndWith(ctx, 5*time.Second)
		if err := s.Send([]byte("a")); err != nil {
			t.Fatal(err)
		}
		before := r.deadline
		leave()
		cancel(errOver)
		synctest.Wait()
		if r.deadline != before {
			t.Errorf("its deadline is %s, and was %s", r.deadline, before)
		}
	})
}

// A server that reads requests within a time must not end a stream with it, nor
// keep what is written.
func TestAStreamOutlivesTheTimesOfItsServer(t *testing.T) {
	topic := newTopic(10, 1<<20)
	left := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := sse.Open(w, 30*time.Second)
		if err == nil {
			f := sse.Follower[string]{
				Topic: topic, Behind: 256, Every: 100 * time.Millisecond,
				Frame: func(m string) []byte { return []byte("data: " + m + "\n\n") }, Ping: func() []byte { return sse.Comment("ping") },
			}
			err = f.Follow(r.Context(), s)
		}
		left <- err
	}))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	server.Start()
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" || resp.ContentLength >= 0 {
		t.Errorf("headers %v", resp.Header)
	}
	r := sse.NewReader(resp.Body, 1<<10)
	pings := 0
	r.OnComment = func(string) {
		if pings++; pings == 3 { // well after the server's time
			topic.Publish("x")
		}
	}
	if e, err := r.Next(); err != nil || string(e.Data) != "x" {
		t.Errorf("got %q, %v", e.Data, err)
	}
	_ = resp.Body.Close()
	if err := <-left; err == nil {
		t.Error("the handler did not see that the reader left")
	}
}

func TestAnEventThatIsTooLargeIsNotRead(t *testing.T) {
	for name, text := range map[string]string{
		"in one line":    "data: " + strings.Repeat("x", 2000) + "\n\n",
		"in many lines":  strings.Repeat("data: x\n", 2000) + "\n",
		"in one comment": ": " + strings.Repeat("x", 2000) + "\n\n",
	} {
		if _, err := sse.NewReader(strings.NewReader(text), 1<<10).Next(); !errors.Is(err, sse.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
