package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	baselinter "github.com/speakeasy-api/openapi/linter"
	"github.com/speakeasy-api/openapi/openapi"
	"github.com/speakeasy-api/openapi/openapi/linter"
	"github.com/speakeasy-api/openapi/validation"
	"gopkg.in/yaml.v3"

	"hangar.io/glidepath/api"
)

// exception is a finding of the linter that stands, and why.
type exception struct {
	rule string
	// at is a JSON pointer. The exception covers what lies below it; "" is the
	// whole document.
	at     string
	reason string
}

func exceptions() []exception {
	return []exception{
		{
			"oas3-example-missing", "",
			"components and the answers of what is served have examples; one for each property would say nothing more",
		},
		{
			"owasp-string-restricted", "",
			"messages, hints and names out of other systems are free text; they are bounded",
		},
		{
			"owasp-rate-limit", "",
			"the edge says how long to wait when it refuses a call, and tells no budget before",
		},
		{
			"owasp-define-error-responses-500", "",
			"no answer has status 500: a failure behind the API is 502",
		},
		{
			"owasp-security-hosts-https-oas3", "/servers/0",
			"the address is relative: in the cluster the API is plain HTTP unless its listener has a certificate",
		},
		{
			"style-oas3-host-trailing-slash", "/servers/0",
			"the address is relative, so the slash is all of it",
		},
		{
			"style-contact-properties", "/info/contact",
			"the project publishes no address of its own",
		},
		{
			"owasp-array-limit", "/components/parameters/PipelineRunNames",
			"names that stand twice count once, so the limit of 200 is not one of length; the edge bounds the query",
		},
		{
			"owasp-string-limit", "/components/schemas/LiveLog",
			"a log has no greatest length, and no reader here holds it whole",
		},
		{
			"owasp-string-limit", "/components/schemas/EventStream",
			"a stream has no greatest length",
		},
		{
			"owasp-no-additional-properties", "/components/schemas/StringMap",
			"its names come from the cluster's objects",
		},
		{
			"owasp-additional-properties-constrained", "/components/schemas/StringMap",
			"its names come from the cluster's objects, which bound them",
		},
	}
}

// TestLint runs every rule of the linter. A finding is fixed or gets an
// exception with its reason, and an exception that covers nothing goes.
func TestLint(t *testing.T) {
	t.Parallel()
	pointers := pointersByPosition(t, api.OpenAPI())
	allowed := exceptions()
	used := make([]bool, len(allowed))
	for _, finding := range lint(t, api.OpenAPI()) {
		at := pointers[position{finding.Node.Line, finding.Node.Column}]
		i := slices.IndexFunc(allowed, func(e exception) bool {
			return e.rule == finding.Rule && (at == e.at || strings.HasPrefix(at, e.at+"/"))
		})
		if i < 0 {
			t.Errorf("%s: %v", at, finding)
			continue
		}
		used[i] = true
	}
	for i, e := range allowed {
		if !used[i] {
			t.Errorf("the exception from %s at %q covers nothing: remove it", e.rule, e.at)
		}
	}
}

// TestLintFinds shows that the linter looks at all: a document with known
// faults has a finding for each.
func TestLintFinds(t *testing.T) {
	t.Parallel()
	source := string(api.OpenAPI())
	faults := map[string]struct{ from, to string }{
		"semantic-path-params":             {"/v1/apps/{app}/live:\n", "/v1/apps/{application}/live:\n"},
		"owasp-integer-limit":              {"        maximum: 720\n", ""},
		"owasp-define-error-responses-401": {"        '401':\n          $ref: '#/components/responses/Unauthorized'\n", ""},
	}
	for _, change := range faults {
		source = strings.Replace(source, change.from, change.to, 1)
	}
	findings := lint(t, []byte(source))
	for rule, change := range faults {
		if !slices.ContainsFunc(findings, func(e *validation.Error) bool { return e.Rule == rule }) {
			t.Errorf("%q made %q is no finding of %s", change.from, change.to, rule)
		}
	}
}

func lint(t *testing.T, source []byte) []*validation.Error {
	t.Helper()
	doc, faults, err := openapi.Unmarshal(t.Context(), bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	l, err := linter.NewLinter(baselinter.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.Lint(t.Context(), baselinter.NewDocumentInfo(doc, "openapi.yaml"), faults, nil)
	if err != nil {
		t.Fatal(err)
	}
	var findings []*validation.Error
	for _, result := range out.Results {
		finding, ok := errors.AsType[*validation.Error](result)
		if !ok || finding.Node == nil {
			t.Fatalf("a finding without a place: %v", result)
		}
		findings = append(findings, finding)
	}
	return findings
}

type position struct{ line, column int }

// pointersByPosition gives the JSON pointer of what begins at each position. A
// key stands for its value.
func pointersByPosition(t *testing.T, source []byte) map[position]string {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		t.Fatal(err)
	}
	pointers := map[position]string{}
	var walk func(n *yaml.Node, at string)
	walk = func(n *yaml.Node, at string) {
		if _, ok := pointers[position{n.Line, n.Column}]; !ok {
			pointers[position{n.Line, n.Column}] = at
		}
		switch n.Kind {
		case yaml.DocumentNode:
			walk(n.Content[0], at)
		case yaml.SequenceNode:
			for i, item := range n.Content {
				walk(item, fmt.Sprintf("%s/%d", at, i))
			}
		case yaml.MappingNode:
			for i := 0; i < len(n.Content); i += 2 {
				key := strings.NewReplacer("~", "~0", "/", "~1").Replace(n.Content[i].Value)
				pointers[position{n.Content[i].Line, n.Content[i].Column}] = at + "/" + key
				walk(n.Content[i+1], at+"/"+key)
			}
		}
	}
	walk(&root, "")
	return pointers
}
