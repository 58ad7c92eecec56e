package runs

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/cache"
)

func TestWhatIsSentIsCountedOnceAndForItsTime(t *testing.T) {
	s := newSending(1000 << 10)
	var ends []func()
	begin := func(caller string, body, kib int, want error, held float64) {
		t.Helper()
		end, err := s.begin(caller, body, int64(kib)<<10)
		if !errors.Is(err, want) || s.held() != held*(1<<10) {
			t.Fatalf("%s, body %d: %v with %v KiB", caller, body, err, s.held()/(1<<10))
		}
		if err == nil {
			ends = append(ends, end)
		}
	}
	begin("a", 1, 300, nil, 300)
	begin("a", 1, 300, nil, 300)
	begin("b", 1, 300, nil, 300)
	begin("a", 2, 250, cache.ErrBusy, 300) // more than half
	begin("a", 2, 200, nil, 500)
	begin("b", 3, 200, nil, 700)
	begin("c", 4, 301, cache.ErrBusy, 700) // more than all
	begin("c", 1, 300, nil, 700)           // which is there
	begin("c", 5, 63, nil, 700)            // small
	begin("d", 4, 300, nil, 1000)
	begin("e", 6, 64, cache.ErrBusy, 1000)
	for i, left := range []float64{1000, 1000, 1000, 800, 600, 300, 300, 0} {
		if ends[i](); s.held() != left*(1<<10) {
			t.Errorf("after end %d: %v KiB", i, s.held()/(1<<10))
		}
	}
	if len(s.bodies)+len(s.shares)+len(s.callers) != 0 {
		t.Errorf("left: %v, %v, %v", s.bodies, s.shares, s.callers)
	}
}

// Callers who ask for one log after the other and read none of it hold what they may;
// others have a refusal, and service once those are given up.
func TestCallersWhoDoNotReadHoldNoMoreThanTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, most = 1200 << 10, 4 << 20
		w := newWorld(t)
		w.server.documents = keep(t, nil, func(c *Config) { c.CacheBytes = 16 << 20 })
		w.withLogs(6, size)
		s := newSending(most)
		w.server.documents.sending = s
		edge := w.pipes()
		status := func(who string, log int) int { return edge.call(t, who, "getRunLogs", logOf(log)).StatusCode }
		for i, tc := range []struct {
			who       string
			log, want int
			bodies    float64
		}{
			{"a", 1, 200, 1},
			{"a", 2, 503, 1}, // more than half
			{"a", 1, 200, 1},
			{"b", 1, 200, 1}, // the same
			{"c", 3, 200, 2},
			{"d", 4, 200, 3},
			{"e", 5, 503, 3}, // more than all
			{"e", 3, 200, 3},
		} {
			if got := status(tc.who, tc.log); got != tc.want {
				t.Errorf("call %d: got %d, want %d", i, got, tc.want)
			}
			if held := s.held(); held < tc.bodies*size || held > tc.bodies*(size+1<<10) {
				t.Errorf("call %d: %v bytes are held, not those of %v logs", i, held, tc.bodies)
			}
		}
		if n := counted(t, w.server.documents.unsent.WithLabelValues("refused")); n != 1 { // another was not read
			t.Errorf("%v are refused", n)
		}
		time.Sleep(stalled)
		synctest.Wait()
		if s.held() != 0 {
			t.Errorf("%v bytes are held for callers who are gone", s.held())
		}
		if n := counted(t, w.server.documents.unsent.WithLabelValues("cut")); n != 6 {
			t.Errorf("%v are cut", n)
		}
		got := edge.call(t, "e", "getRunLogs", logOf(5))
		if n, err := got.rest(); got.StatusCode != http.StatusOK || n != size || err != nil {
			t.Errorf("afterwards: %d with %d bytes, %v", got.StatusCode, n, err)
		}
		synctest.Wait()
		if s.held() != 0 {
			t.Errorf("%v bytes are held of what was sent", s.held())
		}
	})
}

// Who reads slowly is waited for as long as it reads; who stops has no answer that
// looks whole.
func TestASlowCallerHasItsAnswerAndOneThatStopsHasNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 500 << 10
		w := newWorld(t)
		w.withLogs(1, size)
		edge := w.pipes()
		slow, stops := edge.call(t, "a", "getRunLogs", logOf(1)), edge.call(t, "b", "getRunLogs", logOf(1))
		read := int64(0)
		for begun := time.Now(); read < size; {
			n, err := io.CopyN(io.Discard, slow.Body, min(sentPiece, size-read))
			if read += n; err != nil {
				t.Fatalf("after %s: %d bytes, %v", time.Since(begun), read, err)
			}
			time.Sleep(stall - time.Second)
		}
		if n, err := stops.rest(); err == nil || n == size {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// A body that is uncompressed for a caller is held as such, however small it is kept.
func TestABodyThatIsUncompressedForACallerIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 200 << 10
		w := newWorld(t)
		w.withLogs(1, 0)
		for uid := range w.archive.logs {
			w.archive.logs[uid] = string(make([]byte, size))
		}
		edge := w.pipes()
		zipped := edge.call(t, "a", "getRunLogs", logOf(1), "Accept-Encoding: gzip")
		if held := w.server.documents.sending.held(); held != 0 {
			t.Errorf("%v bytes are held of a small one", held)
		}
		plain := edge.call(t, "a", "getRunLogs", logOf(1))
		if held := w.server.documents.sending.held(); held < size {
			t.Errorf("%v bytes are held", held)
		}
		for _, c := range []*caller{zipped, plain} {
			if _, err := c.rest(); err != nil {
				t.Error(err)
			}
		}
	})
}

// reports is a Testkube with one large report.
type reports struct {
	tests
	size int
}

func (r *reports) Report(_ context.Context, _, _ string, _ time.Time, w io.Writer) error {
	_, err := io.WriteString(w, random(1, r.size/2))
	if err == nil {
		_, err = io.WriteString(w, random(2, r.size/2))
	}
	return err
}

func TestReportsAreHeldFromWhenTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 600 << 10
		w := newWorld(t)
		w.server.tests = &reports{size: size}
		s := newSending(2 << 20)
		w.server.documents.sending = s
		edge := w.pipes()
		report := func(who string) *caller { return edge.call(t, who, "getTestReport", "/v1/apps/shop/tests/a/report") }
		for i, tc := range []struct {
			who  string
			want int
		}{{"a", 200}, {"a", 503}, {"b", 200}, {"c", 503}} {
			if got := report(tc.who).StatusCode; got != tc.want {
				t.Errorf("call %d: got %d, want %d", i, got, tc.want)
			}
		}
		if held := s.held(); held < 2*size || held > 2<<20 {
			t.Errorf("%v bytes are held", held)
		}
		time.Sleep(stalled)
		synctest.Wait()
		got := report("c")
		if n, err := got.rest(); got.StatusCode != http.StatusOK || n != size || err != nil {
			t.Errorf("afterwards: %d with %d bytes, %v", got.StatusCode, n, err)
		}
		synctest.Wait()
		if s.held() != 0 || len(s.callers) != 0 {
			t.Errorf("%v bytes are held", s.held())
		}
	})
}

// Logs that nobody waits for any more take half of the room at most.
func TestLogsThatAreReadLeaveRoomForWhatIsSent(t *testing.T) {
	w := newWorld(t)
	w.withLogs(1, 3<<20)
	s := newSending(4 << 20)
	w.server.documents.sending = s
	if got := w.get(logOf(1), about("getRunLogs")); got.Code != http.StatusServiceUnavailable {
		t.Errorf("got %d", got.Code)
	}
	if s.held() != 0 || len(s.callers) != 0 {
		t.Errorf("%v bytes are held", s.held())
	}
}

// One caller who stops reading leaves turns of large logs to the others.
func TestLargeLogsOfOneCallerAreInNobodyElsesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		w.server.wait = 10 * time.Second
		w.server.archive = &endless{archived: w.archive, size: 9 << 20, closed: make(chan struct{}, 100)}
		edge := w.pipes()
		for i, want := range []int{200, 200, 503} {
			if got := edge.call(t, "a", "getRunLogs", oneLog).StatusCode; got != want {
				t.Errorf("call %d: got %d, want %d", i, got, want)
			}
			time.Sleep(time.Second) // for less than the others are waited for
		}
		got := edge.call(t, "b", "getRunLogs", oneLog)
		if n, err := got.rest(); got.StatusCode != http.StatusOK || n != 9<<20 || err != nil {
			t.Errorf("another's: %d with %d bytes, %v", got.StatusCode, n, err)
		}
		time.Sleep(stalled)
		synctest.Wait()
		if w.server.passers.begun != 0 || w.server.passing.begun != 0 {
			t.Error("a turn is not given back")
		}
	})
}
