package main

import (
	"strings"
	"testing"
)

func TestAKnownFailureThatIsNotSoundIsRefused(t *testing.T) {
	t.Parallel()
	const good = "- id: A\n  patterns: ['abc']\n  hint: Do something.\n"
	for name, tt := range map[string]struct{ source, want string }{
		"a pattern that does not compile": {strings.Replace(good, "abc", "a(", 1), "A: error parsing regexp"},
		"one without a pattern":           {strings.Replace(good, "'abc'", "", 1), "it needs an id, a hint and a pattern"},
		"one without a hint":              {strings.Replace(good, "Do something.", "", 1), "it needs an id, a hint and a pattern"},
		"one without an id":               {strings.Replace(good, "id: A", "id: ''", 1), "it needs an id, a hint and a pattern"},
		"an id twice":                     {good + good, "A: it is there twice"},
		"a key that nothing reads":        {good + "  hints: x\n", `unknown field "hints"`},
		"no list":                         {"a: b\n", "parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readFailures([]byte(tt.source))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := readFailures([]byte(good)); err != nil {
		t.Error(err)
	}
}

// rule: R301
func TestAFailureThatIsAddedIsInTheContract(t *testing.T) {
	t.Parallel()
	added := append(failures(t), []byte("- id: AddedLast\n  patterns: ['a word of its own']\n  hint: Do it.\n  field: /deploy\n")...)
	files, err := generate(source(t), added)
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n    {\n      \"id\": \"AddedLast\",\n      \"patterns\": [\n        \"a word of its own\"\n      ],\n      \"hint\": \"Do it.\",\n      \"field\": \"/deploy\"\n    }\n  ]\n}\n"
	if got := string(files["glidepath-contract.json"]); !strings.HasSuffix(got, want) {
		t.Errorf("the contract ends %q", got[len(got)-len(want):])
	}
}
