package results_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	standin "hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/services/runs/results"
)

// logOf archives a TaskRun with a log; nil is none.
func logOf(t *testing.T, cfg standin.Config, text []byte) archive {
	t.Helper()
	a := newArchive(t, cfg)
	a.run(shop, 1, now)
	a.taskRun(shop, 2, 1, now)
	if err := a.ArchiveLog(shop, uid(1), uid(2), text, now); err != nil {
		t.Fatal(err)
	}
	return a
}

func readLog(t *testing.T, c *results.Client, n int) (string, error) {
	t.Helper()
	log, err := c.Log(t.Context(), shop, uid(1), uid(n))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(log)
	if cerr := log.Close(); cerr != nil {
		t.Error(cerr)
	}
	return string(text), err
}

func TestLogsOfEveryKindOfServer(t *testing.T) {
	t.Parallel()
	const text = "[build] one\n[build] two"
	for name, tt := range map[string]struct {
		store standin.LogStore
		text  []byte
		ask   int
		want  string // "" is no log
	}{
		"kept by Results":            {standin.StoredLogs, []byte(text), 2, text + "\n"},
		"kept by Results, not there": {standin.StoredLogs, nil, 2, ""},
		"kept by Results, unknown":   {standin.StoredLogs, nil, 3, ""},
		"of a plug-in":               {standin.PluginLogs, []byte(text), 2, text},
		"of a plug-in, not there":    {standin.PluginLogs, nil, 2, ""},
		"of a plug-in, unknown":      {standin.PluginLogs, nil, 3, ""},
		"of a server without logs":   {standin.NoLogs, []byte(text), 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readLog(t, logOf(t, standin.Config{Logs: tt.store}, tt.text).client(results.Limits{}), tt.ask)
			if tt.want == "" && !errors.Is(err, results.ErrNoLog) || tt.want != "" && (err != nil || got != tt.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// Nothing says that such a TaskRun has no log: its record is wrong.
func TestANameThatIsNoneIsNotALogThatIsMissing(t *testing.T) {
	t.Parallel()
	a := logOf(t, standin.Config{}, []byte("x"))
	c := a.client(results.Limits{})
	for _, n := range []struct{ namespace, result, uid string }{{"-", uid(1), uid(2)}, {shop, "-", uid(2)}, {shop, uid(1), "-"}, {shop, uid(1), "a/b"}, {"", "", ""}} {
		if _, err := c.Log(t.Context(), n.namespace, n.result, n.uid); !errors.Is(err, results.ErrBadRecord) || errors.Is(err, results.ErrNoLog) {
			t.Errorf("%v gives %v", n, err)
		}
	}
	if n := len(a.Requests()); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

// A log that is there and cannot be read whole is a failure, never a short log.
func TestWhatFailsWhileALogIsRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("[build] "+secret+"\n", 5000)
	for name, tt := range map[string]struct {
		fault  standin.Fault
		limits results.Limits
		status int
	}{
		"a store that fails":           {standin.Fault{Status: 500, Body: "Error streaming log " + secret}, results.Limits{}, 500},
		"a refusal of the right":       {standin.Fault{Status: 401, Body: "Not Authorized"}, results.Limits{}, 401},
		"a relay that leads nowhere":   {standin.Fault{Status: 404, Body: "<html>" + secret}, results.Limits{}, 404},
		"a page instead of a log":      {standin.Fault{Status: 200, Body: "<html>" + secret}, results.Limits{}, 200},
		"cut in the middle":            {standin.Fault{Cut: 70_000}, results.Limits{}, 200},
		"an error behind what is sent": {standin.Fault{Append: `{"error":{"code":13,"message":"` + secret + `"}}` + "\n"}, results.Limits{}, 200},
		"the same without a newline":   {standin.Fault{Append: `{"error":{"code":13,"message":"` + secret + `","details":[]}}`}, results.Limits{}, 200},
		"stops in the middle":          {standin.Fault{Hang: 40_000}, results.Limits{Stall: 50 * time.Millisecond}, 200},
		"too large":                    {standin.Fault{}, results.Limits{LogBytes: 10_000}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := logOf(t, standin.Config{}, []byte(long))
			a.SetFaults(tt.fault)
			_, err := readLog(t, a.client(tt.limits), 2)
			checkFailure(t, err, tt.status)
			if errors.Is(err, results.ErrNoLog) {
				t.Error("it counts as no log")
			}
		})
	}
}

func TestAnErrorBeforeAnythingIsSentIsTriedAgain(t *testing.T) {
	t.Parallel()
	a := logOf(t, standin.Config{}, []byte("[build] hello"))
	a.SetFaults(standin.Fault{Status: http.StatusServiceUnavailable, Times: 2})
	if got, err := readLog(t, a.client(results.Limits{}), 2); err != nil || got != "[build] hello\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// What steps write is passed on, whatever it looks like.
func TestLogsThatLookLikeSomethingElse(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"an error of a step in the middle":    `{"error":{"code":13,"message":"x"}}` + "\nmore",
		"JSON of a step at the end":           "one\n" + `{"error":"disk full"}`,
		"an error behind the start of line":   `[build] {"error":{"code":13,"message":"x"}}`,
		"an error of an API that it calls":    `{"error":{"code":403,"message":"x"}}`,
		"an error that says where it is from": `{"error":{"code":5,"message":"x","status":"NOT_FOUND"}}`,
		"an error with its trace":             `{"error":{"code":5,"message":"x"},"trace":"y"}`,
		"an error whose details are none":     `{"error":{"code":5,"message":"x","details":"y"}}`,
		"an error without code":               `{"error":{"message":"x"}}`,
		"bytes of all kinds":                  "\x00\xff\x1b[31mred\r\n\r\r",
		"a line that is longer than is held":  strings.Repeat("x", 30_000) + "\nend",
		"the beginning of an error, cut":      `{"error":`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readLog(t, logOf(t, standin.Config{Logs: standin.PluginLogs}, []byte(text)).client(results.Limits{}), 2)
			if err != nil || got != text {
				t.Errorf("got %.80q, %v", got, err)
			}
		})
	}
}
