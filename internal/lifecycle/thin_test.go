package lifecycle

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCausesOfFailedCallsAreThinnedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newThinHandler(slog.NewTextHandler(&out, nil))).With("process", "livehub")
		failed := func(rule string) { log.Error("call failed", "rule", rule, "traceId", "t") }
		written := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSpace(out.String()), "\n")
		}
		for range 1000 {
			failed("GP-API-502")
			failed("GP-API-503")
			log.Error("call failed elsewhere", "rule", "GP-API-502")
		}
		if got := written(); len(got) != 3 || strings.Contains(got[0], "leftOut") || !strings.Contains(got[0], "process=livehub") {
			t.Errorf("%d records, want the first of each kind: %q", len(got), got[0])
		}
		time.Sleep(thinEvery - 1)
		failed("GP-API-502")
		if out.Len() > 0 {
			t.Error("the next is written early")
		}
		time.Sleep(time.Nanosecond)
		log.With("more", 1).WithGroup("g").Error("call failed", "rule", "GP-API-502")
		if got := written(); len(got) != 1 || !strings.Contains(got[0], "leftOut=1000") {
			t.Errorf("got %q, want one record that says how many were left out", got)
		}
		time.Sleep(thinEvery)
		failed("GP-API-502")
		if got := written(); len(got) != 1 || strings.Contains(got[0], "leftOut") {
			t.Errorf("got %q, want one record and nothing left out", got)
		}
	})
}

func TestOtherRecordsAreNotThinnedOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(newThinHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	for range 5 {
		log.Error("process failed", "error", "x")
		log.Debug("not of this level", "rule", "GP-API-502")
	}
	if n := strings.Count(out.String(), "\n"); n != 5 {
		t.Errorf("%d records, want 5:\n%s", n, out.String())
	}
}

func TestTheKindsThatAreToldApartAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		h := &thinHandler{next: slog.NewTextHandler(&out, nil), seen: &thinned{kinds: map[string]*thinKind{}}}
		log := slog.New(h)
		for i := range 10 * thinKinds {
			log.Error("call failed", "rule", fmt.Sprint(i))
		}
		if n := strings.Count(out.String(), "\n"); n != thinKinds+1 || len(h.seen.kinds) != thinKinds+1 {
			t.Errorf("%d records of %d kinds, want %d of each", n, len(h.seen.kinds), thinKinds+1)
		}
	})
}
