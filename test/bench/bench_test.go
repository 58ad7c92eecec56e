package bench

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/test/bench/parts"
)

// The bench's parts are this program, started again.
func TestMain(m *testing.M) {
	ran, err := parts.Main(os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case !ran:
		os.Exit(m.Run())
	}
}

func TestEveryRowCanBeMeasured(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), Options{Dir: t.ArtifactDir(), Quick: true, Race: devtest.Race, Progress: func(line string) { t.Log(line) }}, &out)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(out.String()) {
		name, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		value, err := strconv.ParseFloat(text, 64)
		if _, twice := values[name]; err != nil || twice || math.IsNaN(value) || math.IsInf(value, 0) {
			t.Errorf("the line %q", line)
		}
		values[name] = value
	}
	for _, g := range Groups() {
		for _, row := range g.Rows {
			value, ok := values[row]
			if !ok {
				t.Errorf("no line for %s", row)
			}
			if strings.HasSuffix(row, "_ratio") && value <= 0 {
				t.Errorf("%s is %v", row, value)
			}
			if _, ok := values[row+"_noise"]; strings.HasSuffix(row, "_ratio") && !ok {
				t.Errorf("%s has no line that says its noise", row)
			}
		}
	}
	if values["policy_calls_meanwhile"] < 1 {
		t.Error("no call went on while the policy changed")
	}
}

func TestRowsAreChosenByName(t *testing.T) {
	groups := []Group{{Rows: []string{"a", "b"}}, {Rows: []string{"c"}}, {Rows: []string{"d"}}}
	for name, tc := range map[string]struct {
		rows []string
		want string
	}{
		"none is all":                     {nil, "a c d"},
		"one brings its group":            {[]string{"b"}, "a"},
		"two of a group bring it once":    {[]string{"b", "a"}, "a"},
		"the order is that of the groups": {[]string{"d", "a"}, "a d"},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(groups, tc.rows)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range chosen {
				got = append(got, g.Rows[0])
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
	if _, err := choose(groups, []string{"a", "x"}); err == nil || !strings.Contains(err.Error(), "x") {
		t.Errorf("an unknown row: %v", err)
	}
}

func TestCPUTimeIsReadPastAnyName(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20"
	for name, stat := range map[string]string{
		"plain":       "12 (authz)" + rest,
		"with spaces": "12 (a b 99 77)" + rest,
		"with ) in":   "12 (a) b)" + rest,
	} {
		got, err := parseCPUTime(stat)
		if err != nil || got.Seconds() != 2 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, stat := range []string{"", "12 (authz)", "12 (authz) S 1 2", "12 (authz) S 1 2 3 4 5 6 7 8 9 10 x y"} {
		if got, err := parseCPUTime(stat); err == nil {
			t.Errorf("%q: %v", stat, got)
		}
	}
	if got, err := cpuTime(os.Getpid()); err != nil || got < 0 {
		t.Errorf("of this process: %v, %v", got, err)
	}
}
