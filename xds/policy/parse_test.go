package policy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
)

func TestWhatAPolicySaysIsInForce(t *testing.T) {
	t.Parallel()
	const all = `
version: 1
defaults: {timeout: 7s}
backends:
  livehub: {timeout: 9s}
operations:
  listLive: {timeout: 1500ms}
`
	for name, tt := range map[string]struct {
		policy, op string
		want       time.Duration
	}{
		"a version and nothing else":               {"version: 1\n", "listLive", DefaultTimeout},
		"an operation's own setting wins":          {all, "listLive", 1500 * time.Millisecond},
		"then its backend's":                       {all, "listLiveRuns", 9 * time.Second},
		"then the defaults":                        {all, "whoami", 7 * time.Second},
		"a log keeps its own against the defaults": {all, "getRunLogs", LogTimeout},
		"and yields to its backend's":              {"version: 1\nbackends: {runs: {timeout: 3s}}\n", "getRunLogs", 3 * time.Second},
		"and to what is said of itself":            {"version: 1\noperations: {getRunLogs: {timeout: 4s}}\n", "getRunLogs", 4 * time.Second},
		"a stream has no timeout":                  {all, "streamLiveRuns", 0},
		"the shortest":                             {"version: 1\ndefaults: {timeout: 100ms}\n", "whoami", MinTimeout},
		"the longest":                              {"version: 1\ndefaults: {timeout: 5m}\n", "whoami", MaxTimeout},
		"an empty mapping says nothing":            {"version: 1\noperations: {listLive: {}}\n", "listLive", DefaultTimeout},
		"quotes and other styles":                  {"{\"version\": '1', \"defaults\": {\"timeout\": \"3s\"}}", "whoami", 3 * time.Second},
		"other line ends":                          {"version: 1\r\ndefaults: {timeout: 3s}\r\n", "whoami", 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pol, err := Parse("policy.yaml", []byte(tt.policy), api.Operations())
			if err != nil {
				t.Fatal(err)
			}
			op, ok := api.Lookup(tt.op)
			if !ok {
				t.Fatalf("no operation %s", tt.op)
			}
			if got := pol.For(op).Timeout; got != tt.want {
				t.Errorf("timeout %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhatIsWrongIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy string
		want   []string
	}{
		"nothing at all":    {"", []string{`p:1:1: empty: a policy that sets nothing has a version`}},
		"comments only":     {"# version: 1\n", []string{`p:1:1: empty: a policy that sets nothing has a version`}},
		"blank lines":       {"\n \n", []string{`p:1:1: empty: a policy that sets nothing has a version`}},
		"an empty document": {"---\n", []string{`p:2:1: the policy: not a mapping`}},
		"no version":        {"defaults: {}\n", []string{`p:1:1: version: missing; it must be 1`}},
		"another version":   {"version: 2\n", []string{`p:1:10: version: only 1 is known`}},
		"an unknown key": {"version: 1\ntimeouts: {}\n", []string{
			`p:2:1: unknown key "timeouts"; known are version, defaults, backends, operations`,
		}},
		"an unknown setting": {"version: 1\ndefaults:\n  retries: 3\n", []string{
			`p:3:3: defaults: unknown key "retries"; known are timeout, rateLimit, callerRateLimit`,
		}},
		"an unknown operation": {"version: 1\noperations:\n  listLives: {}\n", []string{
			`p:3:3: operations: there is no operation "listLives"`,
		}},
		"an unknown backend": {"version: 1\nbackends: {redis: {}}\n", []string{
			`p:2:12: backends: there is no backend "redis"`,
		}},
		"every fault at once, in order": {"version: 3\noperations:\n  nope: {timeout: never}\n  listLive: {timeout: 1h, more: 1}\n", []string{
			`p:1:10: version: only 1 is known`,
			`p:3:3: operations: there is no operation "nope"`,
			`p:3:19: operations.nope.timeout: "never" is not a duration such as 10s`,
			`p:4:23: operations.listLive.timeout: "1h" is not between 100ms and 5m0s`,
			`p:4:27: operations.listLive: unknown key "more"; known are timeout, rateLimit, callerRateLimit`,
		}},
		"a timeout of nothing": {"version: 1\ndefaults: {timeout: 0s}\n", []string{
			`p:2:21: defaults.timeout: "0s" is not between 100ms and 5m0s`,
		}},
		"a negative timeout": {"version: 1\ndefaults: {timeout: -1s}\n", []string{
			`p:2:21: defaults.timeout: "-1s" is not between 100ms and 5m0s`,
		}},
		"a number without a unit": {"version: 1\ndefaults: {timeout: 10}\n", []string{
			`p:2:21: defaults.timeout: "10" is not a duration such as 10s`,
		}},
		"a list for a timeout": {"version: 1\ndefaults: {timeout: [10s]}\n", []string{
			`p:2:21: defaults.timeout: not a duration such as 10s`,
		}},
		"a stream's timeout": {"version: 1\noperations:\n  streamEvents:\n    timeout: 10s\n", []string{
			`p:4:5: operations.streamEvents.timeout: streamEvents is a stream, which has none`,
		}},
		"a list for the whole":  {"- version: 1\n", []string{`p:1:1: the policy: not a mapping`}},
		"a word for a mapping":  {"version: 1\ndefaults: none\n", []string{`p:2:11: defaults: not a mapping`}},
		"nothing for a mapping": {"version: 1\noperations:\n", []string{`p:2:12: operations: not a mapping`}},
		"the same key twice":    {"version: 1\ndefaults: {}\ndefaults: {}\n", []string{`p:3:1: the policy: "defaults" is given twice`}},
		"an anchor":             {"version: 1\ndefaults: &d {timeout: 1s}\n", []string{`p:2:11: the policy: anchors and aliases are not taken`}},
		"a merge":               {"version: 1\n<<: {defaults: {}}\n", []string{`p:2:1: the policy: a key must be a plain word`}},
		"a key that is a list":  {"version: 1\n[a]: 1\n", []string{`p:2:1: the policy: a key must be a plain word`}},
		"a second document":     {"version: 1\n---\nversion: 1\n", []string{`p:2:1: a second document; there must be one`}},
		"not YAML":              {"version: 1\n  defaults: {}\n", []string{`p:2:11: not YAML: mapping values are not allowed in this context`}},
		"a bracket left open":   {"version: 1\ndefaults: {timeout: 1s\n", []string{`p:3:1: not YAML: did not find expected ',' or '}'`}},
		"nested without end":    {strings.Repeat("[", 100_000), []string{`p:1:9: not YAML: exceeded max depth of 8`}},
		"too large":             {"#" + strings.Repeat("x", MaxBytes), []string{`p: the policy is larger than 262144 bytes`}},
		"a very long name": {"version: 1\n" + strings.Repeat("x", 500) + ": {}\n", []string{
			`p:2:1: unknown key "` + strings.Repeat("x", 60) + `…"; known are version, defaults, backends, operations`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pol, err := Parse("p", []byte(tt.policy), api.Operations())
			if err == nil {
				t.Fatal("taken")
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), err.Error()); diff != "" {
				t.Errorf("faults differ (-want +got):\n%s", diff)
			}
			if pol.defaults != (Settings{}) || pol.backends != nil || pol.operations != nil {
				t.Errorf("a policy comes with the error: %+v", pol)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "version: 1\n", "version: 1\ndefaults: {timeout: 7s}\nbackends:\n  livehub: {timeout: 9s}\noperations:\n  listLive: {timeout: 1500ms}\n",
		"version: &a 1\noperations: *a\n", "a: [", "- - - -", "\xff\xfe", "{\"version\": 1}", "version: !!str 1\n", "? [a]\n: b\n", "--- |\n x\n...\n--- y",
		"version: 1\noperations:\n  streamEvents: {timeout: 10s}\n", "%YAML 1.2\n---\nversion: 1\n",
		"version: 1\ndefaults: {rateLimit: {requests: 60, per: 1m, burst: 20}, callerRateLimit: none}\noperations:\n  listLive: {rateLimit: none}\n",
		"version: 1\nbackends: {livehub: {rateLimit: {requests: 4294967296, per: 1h}, callerRateLimit: {requests: 1, per: 1ms}}}\n",
	} {
		f.Add([]byte(seed))
	}
	operations := api.Operations()
	f.Fuzz(func(t *testing.T, data []byte) {
		pol, err := Parse("p", data, operations)
		if err != nil {
			// Whatever is wrong has a place, or is the size of the file.
			for _, fault := range faults(err) {
				if len(data) <= MaxBytes && (fault.Line < 1 || fault.Column < 1) {
					t.Errorf("%q is refused without a place: %v", data, fault)
				}
			}
			return
		}
		for _, op := range operations {
			d := pol.For(op).Timeout
			if op.Stream != (d == 0) || (d != 0 && (d < MinTimeout || d > MaxTimeout)) {
				t.Errorf("%q gives %s a timeout of %s", data, op.ID, d)
			}
			for _, l := range []RateLimit{pol.For(op).RateLimit, pol.For(op).CallerRateLimit} {
				if l.Limit.IsZero() {
					continue
				}
				if err := l.Limit.Validate(); err != nil || !l.Said {
					t.Errorf("%q gives %s a limit of %s: %v", data, op.ID, l.Limit, err)
				}
			}
		}
	})
}

// faults gives the faults that an error joins.
func faults(err error) []*ParseError {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		f, _ := errors.AsType[*ParseError](err)
		return []*ParseError{f}
	}
	var out []*ParseError
	for _, e := range joined.Unwrap() {
		f, _ := errors.AsType[*ParseError](e)
		out = append(out, f)
	}
	return out
}
