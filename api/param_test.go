package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
)

// accepts says whether p takes value, as the edge decides it.
func accepts(t *testing.T, p api.Param, value string) bool {
	t.Helper()
	pattern, err := regexp.Compile(p.Pattern)
	if err != nil {
		t.Fatal(err)
	}
	return len(value) <= p.MaxLength && pattern.MatchString(value)
}

func param(t *testing.T, id, in, name string) api.Param {
	t.Helper()
	op, ok := api.Lookup(id)
	if !ok {
		t.Fatalf("no operation %s", id)
	}
	params := slices.Concat(op.PathParams, op.QueryParams, op.HeaderParams)
	i := slices.IndexFunc(params, func(p api.Param) bool { return p.In == in && p.Name == name })
	if i < 0 {
		t.Fatalf("%s has no %s parameter %s", id, in, name)
	}
	return params[i]
}

// malformedNames are refused wherever a name stands in a path or query.
func malformedNames() map[string]string {
	return map[string]string{
		"nothing":                  "",
		"upper case":               "Gate",
		"an underscore":            "gate_api",
		"a hyphen first":           "-gate",
		"a hyphen last":            "gate-",
		"a dot first":              ".gate",
		"a dot last":               "gate.",
		"two dots":                 "..",
		"two dots inside":          "a..b",
		"a space":                  "gate api",
		"a percent sign":           "gate%2fapi",
		"a semicolon":              "gate;x=1",
		"a slash":                  "gate/api",
		"a backslash":              `gate\api`,
		"a comma":                  "gate,api",
		"a line end after a name":  "gate\n",
		"a NUL":                    "gate\x00",
		"a letter of another kind": "gäte",
		"full-width letters":       "\uff47ate",
		"64 characters":            strings.Repeat("a", 64),
	}
}

func TestMalformedNamesAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	isName := func(p api.Param) bool {
		return slices.Contains([]string{"app", "name", "taskRun", "container", "env", "cluster", "chainId"}, p.Name)
	}
	tried := 0
	for _, op := range api.Operations() {
		for _, p := range slices.Concat(op.PathParams, op.QueryParams) {
			if !isName(p) {
				continue
			}
			tried++
			for what, name := range malformedNames() {
				if accepts(t, p, name) {
					t.Errorf("%s: %s %s takes %s: %q", op.ID, p.In, p.Name, what, name)
				}
			}
		}
	}
	if tried < 39 {
		t.Errorf("only %d names were tried: the test looks for the wrong parameters", tried)
	}
}

func TestParameterValues(t *testing.T) {
	t.Parallel()
	const uid = "0c5f7a3e-8d0b-4a53-9d0a-1f0f4a9b2c11"
	for name, test := range map[string]struct {
		id, in, param string
		good, bad     []string
	}{
		"an app's name fits a namespace": {
			"listLive", "path", "app",
			[]string{"a", "0", "gate-api", "sky-marshall", strings.Repeat("a", 54)},
			[]string{"gate.api", strings.Repeat("a", 55)},
		},
		"a run's name is a DNS name": {
			"cancelPipelineRun", "path", "name",
			[]string{"ci-0-build-abc", "v1.2", strings.Repeat("a", 63)},
			[]string{"a.-b", "a-.b"},
		},
		"a container's name is a label": {
			"getLiveLogs", "path", "container",
			[]string{"step-compile", strings.Repeat("c", 63)},
			[]string{"step.compile"},
		},
		"a run's id is a uid": {
			"getRun", "path", "result",
			[]string{uid},
			[]string{"", "ci-0-build-abc", strings.ToUpper(uid), uid + "0", "{" + uid + "}"},
		},
		"a test run's id": {
			"getTestReport", "path", "id",
			[]string{"6710c6ee6ee5b1f2a1e1f0aa", "gate-api-smoke-12"},
			[]string{"", "..", "a.b", "a/b", strings.Repeat("a", 129)},
		},
		"an image is one of ghcr.io": {
			"getEvidence", "query", "image",
			[]string{
				"ghcr.io/o/shop:1.2.0-3333333",
				"ghcr.io/o/shop@sha256:" + strings.Repeat("a", 64),
				"ghcr.io/o/team/shop",
			},
			[]string{
				"", "shop", "docker.io/o/shop:1", "ghcr.io.evil/o/shop", "ghcr.io", "ghcr.io/", "ghcr.io/o/../x",
				"https://ghcr.io/o/shop", "ghcr.io/o/shop@sha256:abc", "ghcr.io/O/shop", "ghcr.io/o/shop:1?x", "ghcr.io/shop", "ghcr.io/o/a..b",
			},
		},
		"an idempotency key": {
			"rerunPipelineRun", "header", "Idempotency-Key",
			[]string{"k", "A-z_0.9:x", strings.Repeat("k", 128)},
			[]string{"", "a b", "a/b", "a,b", "kéy", strings.Repeat("k", 129)},
		},
		"a point in the stream of events": {
			"listRecentEvents", "query", "since",
			[]string{"1761742812345678-3f2a9c01b7de", "2026-10-29T12:00:12Z", "2026-10-29t12:00:12.345678+02:00"},
			[]string{"", "yesterday", "1761742812345678", "1761742812345678-3F2A9C01B7DE", "2026-10-29"},
		},
		"a person": {
			"listLive", "header", "X-Glidepath-On-Behalf-Of",
			[]string{"user:default/jfillman", "Jo Fillman-Low", "x", "-", "+.~!"},
			[]string{"", "a,b", ",", " x", "x ", "a\r\nb", "Zoë", strings.Repeat("x", 257)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := param(t, test.id, test.in, test.param)
			for _, value := range test.good {
				if !accepts(t, p, value) {
					t.Errorf("%q is refused", value)
				}
			}
			for _, value := range test.bad {
				if accepts(t, p, value) {
					t.Errorf("%q is taken", value)
				}
			}
		})
	}
}
