package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/ratelimit"
)

func TestTheRateLimitInForce(t *testing.T) {
	t.Parallel()
	const all = `
version: 1
defaults:
  rateLimit: {requests: 600, per: 1m, burst: 100}
  callerRateLimit: {requests: 200, per: 1s}
backends:
  livehub:
    rateLimit: {requests: 5, per: 1s}
operations:
  listLive: {rateLimit: {requests: 60, per: 1m, burst: 1}}
  streamLiveRuns: {rateLimit: none, callerRateLimit: none}
`
	callers := ratelimit.Limit{Bucket: "defaults", Requests: 200, Per: time.Second, Burst: 200}
	for name, tt := range map[string]struct {
		policy, op string
		each, all  ratelimit.Limit
	}{
		"nothing said": {"version: 1\n", "listLive", ratelimit.Limit{}, ratelimit.Limit{}},
		"an operation's own limit wins": {
			all, "listLive",
			ratelimit.Limit{Bucket: "operations.listLive", Requests: 60, Per: time.Minute, Burst: 1},
			callers,
		},
		"then its backend's, with a burst of its requests": {
			all, "listLiveRuns",
			ratelimit.Limit{Bucket: "backends.livehub", Requests: 5, Per: time.Second, Burst: 5},
			callers,
		},
		"then the defaults": {
			all, "whoami",
			ratelimit.Limit{Bucket: "defaults", Requests: 600, Per: time.Minute, Burst: 100},
			callers,
		},
		"none switches off what stands above": {all, "streamLiveRuns", ratelimit.Limit{}, ratelimit.Limit{}},
		"an operation's limit under a none": {
			"version: 1\ndefaults: {rateLimit: none}\noperations: {whoami: {rateLimit: {requests: 1, per: 1h}}}\n", "whoami",
			ratelimit.Limit{Bucket: "operations.whoami", Requests: 1, Per: time.Hour, Burst: 1},
			ratelimit.Limit{},
		},
		"the most": {
			"version: 1\ndefaults: {rateLimit: {requests: 1000000, per: 1s, burst: 1000000}}\n", "whoami",
			ratelimit.Limit{Bucket: "defaults", Requests: 1_000_000, Per: time.Second, Burst: 1_000_000},
			ratelimit.Limit{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pol, err := Parse("p", []byte(tt.policy), api.Operations())
			if err != nil {
				t.Fatal(err)
			}
			op, ok := api.Lookup(tt.op)
			if !ok {
				t.Fatalf("no operation %s", tt.op)
			}
			got := pol.For(op)
			if got.RateLimit.Limit != tt.each || got.CallerRateLimit.Limit != tt.all {
				t.Errorf("got %s and %s, want %s and %s", got.RateLimit.Limit, got.CallerRateLimit.Limit, tt.each, tt.all)
			}
		})
	}
}

func TestWhatIsWrongWithARateLimitIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit string
		want  []string
	}{
		"a number":        {`rateLimit: 60`, []string{`p:3:14: defaults.rateLimit: neither {requests, per, burst} nor none`}},
		"nothing":         {`rateLimit:`, []string{`p:3:13: defaults.rateLimit: neither {requests, per, burst} nor none`}},
		"a list":          {`rateLimit: [60]`, []string{`p:3:14: defaults.rateLimit: neither {requests, per, burst} nor none`}},
		"an empty one":    {`rateLimit: {}`, []string{`p:3:14: defaults.rateLimit.requests: missing`, `p:3:14: defaults.rateLimit.per: missing`}},
		"no time":         {`rateLimit: {requests: 60}`, []string{`p:3:14: defaults.rateLimit.per: missing`}},
		"an unknown key":  {`rateLimit: {requests: 60, per: 1m, unit: s}`, []string{`p:3:38: defaults.rateLimit: unknown key "unit"; known are requests, per, burst`}},
		"a key twice":     {`rateLimit: {requests: 60, per: 1m, per: 1s}`, []string{`p:3:38: defaults.rateLimit: "per" is given twice`}},
		"no calls at all": {`rateLimit: {requests: 0, per: 1m}`, []string{`p:3:25: defaults.rateLimit.requests: "0" is not between 1 and 1000000`}},
		"fewer":           {`rateLimit: {requests: -1, per: 1m}`, []string{`p:3:25: defaults.rateLimit.requests: "-1" is not a whole number`}},
		"a part of one":   {`rateLimit: {requests: 0.5, per: 1m}`, []string{`p:3:25: defaults.rateLimit.requests: "0.5" is not a whole number`}},
		"too many":        {`rateLimit: {requests: 99999999999999999999, per: 1m}`, []string{`p:3:25: defaults.rateLimit.requests: "99999999999999999999" is not between 1 and 1000000`}},
		"too many at once": {`rateLimit: {requests: 1, per: 1s, burst: 1000001}`, []string{
			`p:3:44: defaults.rateLimit.burst: "1000001" is not between 1 and 1000000`,
		}},
		"no unit": {`rateLimit: {requests: 1, per: 60}`, []string{`p:3:33: defaults.rateLimit.per: "60" is not a duration such as 10s`}},
		"a short time": {`rateLimit: {requests: 1, per: 100ms}`, []string{
			`p:3:33: defaults.rateLimit.per: "100ms" is not between 1s and 1h0m0s`,
		}},
		"a day": {`rateLimit: {requests: 1, per: 24h}`, []string{`p:3:33: defaults.rateLimit.per: "24h" is not between 1s and 1h0m0s`}},
		"a burst that hours do not bring back": {`rateLimit: {requests: 1, per: 1m, burst: 100}`, []string{
			`p:3:14: defaults.rateLimit: burst: at this rate 100 calls come back in 1h40m0s, which is more than 1h0m0s`,
		}},
		"every fault at once": {`rateLimit: {requests: x, per: y, burst: z}`, []string{
			`p:3:25: defaults.rateLimit.requests: "x" is not a whole number`,
			`p:3:33: defaults.rateLimit.per: "y" is not a duration such as 10s`,
			`p:3:43: defaults.rateLimit.burst: "z" is not a whole number`,
		}},
		"a caller with less a second than its people": {"rateLimit: {requests: 10, per: 1s}\n  callerRateLimit: {requests: 100, per: 1m}", []string{
			`p:4:3: defaults.callerRateLimit: allows a caller less than rateLimit allows each of its people`,
		}},
		"a caller with less at once than its people": {"callerRateLimit: {requests: 10, per: 1s, burst: 9}\n  rateLimit: {requests: 10, per: 1s}", []string{
			`p:3:3: defaults.callerRateLimit: allows a caller less than rateLimit allows each of its people`,
		}},
		"an anchor in it": {`rateLimit: {requests: &n 1, per: 1s}`, []string{`p:3:25: defaults.rateLimit: anchors and aliases are not taken`, `p:3:14: defaults.rateLimit.requests: missing`}},
		"a list in it":    {`rateLimit: {requests: [1], per: {}}`, []string{`p:3:25: defaults.rateLimit.requests: not a whole number`, `p:3:35: defaults.rateLimit.per: not a duration such as 10s`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("p", []byte("version: 1\ndefaults:\n  "+tt.limit+"\n"), api.Operations())
			if err == nil {
				t.Fatal("taken")
			}
			if diff := cmp.Diff(strings.Join(tt.want, "\n"), err.Error()); diff != "" {
				t.Errorf("faults differ (-want +got):\n%s", diff)
			}
		})
	}
}
