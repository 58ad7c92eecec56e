package explain_test

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"hangar.io/glidepath/services/runs/explain"
)

func TestWhatIsShownOfALogDoesNothingToATerminal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ log, want string }{
		"colours":                        {"\x1b[1;31mboom\x1b[0m 1", "boom 1"},
		"a title":                        {"\x1b]0;title\aboom", "boom"},
		"a link":                         {"\x1b]8;;http://x\x1b\\boom\x1b]8;;\x1b\\", "boom"},
		"a string without an end":        {"\x1b]0;boom", "0;boom"},
		"a sequence without an end":      {"boom\x1b[31", "boom"},
		"an escape at the end":           {"boom\x1b", "boom"},
		"a bar that was overwritten":     {"10%\r50%\r100% boom", "100% boom"},
		"zeros and bells":                {"\x00bo\aom\x7f", "boom"},
		"tabs stay":                      {"\tboom\tx", "\tboom\tx"},
		"what is no UTF-8":               {"boom \xff\xfe", "boom \uFFFD"},
		"more than is shown":             {"boom " + strings.Repeat("é", 2000), "boom " + strings.Repeat("é", 1021) + "..."},
		"a line beyond the longest":      {strings.Repeat("x", 16<<10) + "boom 2", "boom 2"},
		"a line of two steps is not two": {strings.Repeat("x", 16<<10) + "[other] boom", "[other] boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e := explainLog(t, own(t, "Boom", "boom"), tt.log+"\n"); e.Evidence != tt.want {
				t.Errorf("%q", e.Evidence)
			}
		})
	}
}

// A log that comes near a pattern in every line costs what is tested of it and
// no more, and what its condition says is found all the same.
func TestALogMadeToBeSlowIsTestedWithinABound(t *testing.T) {
	t.Parallel()
	c := own(t, "Late", "boom.*bang", "Condition", "the end")
	c.Limit(1<<20, 10_000)
	tr := taskRun("run-x", "unit=1").with("False", "this is the end")
	for near, want := range map[int]string{900: "Late", 1100: "Condition"} {
		log := strings.Repeat("boom 67890\n", near) + "boom and bang\n"
		entries, err := c.Explain(t.Context(), archived(t, tr), reading(func() io.Reader { return strings.NewReader(log) }))
		if err != nil || entries[0].KnownFailure == nil || entries[0].KnownFailure.ID != want {
			t.Errorf("after %d lines that come near: %+v, %v", near, entries, err)
		}
		if said := strings.Contains(entries[0].Note, "not all lines were held against"); said != (near > 1000) {
			t.Errorf("after %d lines that come near the note is %q", near, entries[0].Note)
		}
	}
	// Whoever is told that nothing matched is told too that not all was tested.
	entries, err := c.Explain(t.Context(), archived(t, taskRun("run-x", "unit=1")), reading(func() io.Reader { return strings.NewReader(strings.Repeat("boom 67890\n", 1100)) }))
	if err != nil || entries[0].KnownFailure != nil || entries[0].Note == "" || !strings.Contains(entries[0].Evidence, "boom 67890\n") {
		t.Errorf("%+v, %v", entries, err)
	}
}

// What is read of a log that is longer than that counts, and the answer says that
// it is not all. What its last lines are nobody knows.
func TestALogWithoutAnEndIsNotReadForEver(t *testing.T) {
	t.Parallel()
	const note = "the log is longer than 1 MiB, and was read that far"
	for name, tt := range map[string]struct {
		first, known, evidence string
	}{
		"nothing known in what was read": {"", "", `"step-unit" exited with code 1`},
		"something known at its start":   {"boom 1\n", "Boom", "boom 1"},
	} {
		c := own(t, "Boom", "boom")
		c.Limit(1<<20, 1<<20)
		log := io.MultiReader(strings.NewReader(tt.first), endless(strings.Repeat("x", 1000)+"\n"))
		entries, err := c.Explain(t.Context(), archived(t, taskRun("run-x", "unit=1")), reading(func() io.Reader { return log }))
		if err != nil || len(entries) != 1 {
			t.Fatalf("%s: %+v, %v", name, entries, err)
		}
		e := entries[0]
		if (e.KnownFailure != nil) != (tt.known != "") || e.Evidence != tt.evidence || e.Note != note || e.Log != explain.LogArchived {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// One that is just as long as may be is all there.
	c := own(t, "Boom", "boom")
	c.Limit(1<<20, 1<<20)
	whole := strings.Repeat("x\n", 1<<19-2) + "end\n"
	entries, err := c.Explain(t.Context(), archived(t, taskRun("run-x", "unit=1")), reading(func() io.Reader { return strings.NewReader(whole) }))
	if err != nil || entries[0].Note != "" || !strings.HasSuffix(entries[0].Evidence, "end") {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestAMessageIsTestedHoweverLongItIs(t *testing.T) {
	t.Parallel()
	tr := taskRun("run-x", "unit=1").with("False", strings.Repeat("waiting\n", 20_000)+"boom at last")
	if got := explained(t, own(t, "Boom", "boom"), nil, tr); got[0].KnownFailure == nil || got[0].Evidence != "boom at last" || got[0].Note != "" {
		t.Errorf("%.300v", got[0])
	}
}

// FuzzTheWordsOfPatterns holds what is found by way of words against what
// regular expressions alone find.
func FuzzTheWordsOfPatterns(f *testing.F) {
	f.Add(`(?i)no such host|x+timeout`, "dial: No Such HOST\nxtimeout")
	f.Add(`a(?:bcd|efgh)?ijk`, "aijk\nABCDIJK")
	f.Add(`\.go:[0-9]+: (?:undefined|cannot use)`, "a.go:3: cannot use x")
	f.Add(`[Pp]ermission denied`, "Permission denied")
	f.Add(`(abc){0,2}d`, "d")
	f.Add(`(?:abc|de)+`, "de")
	f.Fuzz(func(t *testing.T, pattern, log string) {
		expression, err := regexp.Compile(pattern)
		if err != nil || expression.MatchString("") || len(pattern) > 200 || len(log) > 4<<10 || !utf8.ValidString(pattern) || !ascii(log) {
			return
		}
		want := ""
		for line := range strings.SplitSeq(log, "\n") {
			if line != "" && expression.MatchString(line) {
				want = line
				break
			}
		}
		e := explainLog(t, own(t, "Other", "a literal that is nowhere", "It", pattern), log)
		if (e.KnownFailure != nil) != (want != "") || (want != "" && e.Evidence != want) {
			// The condition is tested too.
			if want == "" && e.KnownFailure != nil && expression.MatchString(e.Evidence) {
				return
			}
			t.Errorf("%q of %q: %+v, want the line %q", pattern, log, e, want)
		}
	})
}

// ascii says whether a log is of characters that are shown as they are; of
// others the cleaning has tests of its own.
func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < ' ' && r != '\n') || r >= 0x7f }) && len(s) < 2<<10
}

func FuzzLogs(f *testing.F) {
	f.Add("[unit] --- FAIL: TestA\n[report] boom\n", "unit")
	f.Add("step-unit :-\n\x1b[31mOOMKilled\x1b[0m\r\n", "unit")
	f.Add("container-step-unit: message=\x1b]0;\xff\n\n\n", "unit")
	c := contract(f)
	f.Fuzz(func(t *testing.T, log, step string) {
		tr := taskRun("run-x", "other=0", strings.ReplaceAll(step, "=", "")+"=1")
		entries, err := c.Explain(t.Context(), archived(t, tr), logsOf(map[string]string{"run-x": log}))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !utf8.ValidString(e.Evidence) || strings.ContainsAny(e.Evidence, "\x1b\x00\r") || len(e.Evidence) > 15*(2<<10+5)*3 {
				t.Errorf("%q", e.Evidence)
			}
			if e.KnownFailure == nil && strings.Count(e.Evidence, "\n") > 14 {
				t.Errorf("%d lines", strings.Count(e.Evidence, "\n"))
			}
		}
	})
}

// BenchmarkExplain is what a log of 10 MB costs, as a build prints it and as one
// that is made to be slow.
func BenchmarkExplain(b *testing.B) {
	c := contract(b)
	tr := taskRun("run-x", "unit=1")
	for name, line := range map[string]string{
		"ordinary": "[unit] 2026-08-03T09:14:05.118230Z INFO  com.example.shop.OrderService - order 4711 was priced and sent to the warehouse in 12 ms\n",
		"hostile":  "[unit] Total: 1 (HIGH: Tests: 1 runs, Coverage for change CHG1 TaskRun \"a\" error: x.go:1:1: panic: no matching x509: version a\n",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(10 << 20)
			b.ReportAllocs()
			for b.Loop() {
				entries, err := c.Explain(b.Context(), archived(b, tr), reading(func() io.Reader { return io.LimitReader(endless(line), 10<<20) }))
				if err != nil || len(entries) != 1 {
					b.Fatal(err)
				}
			}
		})
	}
}

var _ explain.Logs = reading(nil)
