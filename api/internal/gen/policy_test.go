package main

import (
	"strings"
	"testing"
)

const policyOfAnApp = `
        tier: T0
        backend: things
        scope: app
        verb: list
        resource: things
        stream: false
        write: false
        cached: false
        planned: true`

// document is a small contract with one operation.
const document = `openapi: 3.0.3
info:
  title: Things
  version: 1.2.3
  x-glidepath-contract-version: 4
paths:
  /v1/apps/{app}/things:
    get:
      operationId: listThings
      tags: [things]
      parameters:
        - name: app
          in: path
          required: true
          schema: {type: string, maxLength: 3, pattern: '^a$'}
      x-glidepath:` + policyOfAnApp + `
      responses:
        '200':
          description: Things.
`

func TestIncompletePoliciesAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ from, to, want string }{
		"no tier":                       {"tier: T0", "", `unknown tier ""`},
		"an unknown tier":               {"tier: T0", "tier: T3", `unknown tier "T3"`},
		"no scope":                      {"scope: app", "", `unknown scope ""`},
		"an unknown scope":              {"scope: app", "scope: all", `unknown scope "all"`},
		"no backend":                    {"backend: things", "", `backend "" is not`},
		"another backend than the tag":  {"backend: things", "backend: others", `backend "others" is not`},
		"no verb":                       {"verb: list", "", "needs a verb"},
		"no resource":                   {"resource: things", "", "needs a verb and a resource"},
		"a right that nobody asks for":  {"scope: app", "scope: self", "asks no review"},
		"no stream":                     {"stream: false", "", "stream is not given"},
		"no write":                      {"write: false", "", "write is not given"},
		"no cached":                     {"cached: false", "", "cached is not given"},
		"no planned":                    {"planned: true", "", "planned is not given"},
		"a write that is said to read":  {"write: false", "write: true", "tier T0 does not fit write"},
		"a key that nobody knows":       {"planned: true", "planned: true\n        retries: 3", "unknown field"},
		"a switch that is no switch":    {"stream: false", "stream: 'no'", "decode x-glidepath"},
		"all of the policy":             {policyOfAnApp, " {}", "unknown tier"},
		"the block itself":              {"x-glidepath:" + policyOfAnApp, "", "no x-glidepath block"},
		"no name of the operation":      {"operationId: listThings", "", "no operationId"},
		"no version of the contract":    {"x-glidepath-contract-version: 4", "", "is no number"},
		"a parameter that is not there": {"/things:", "/{things}:", "validate"},
		"no OpenAPI at all":             {"openapi: 3.0.3", "openapi: [", "parse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := strings.Replace(document, test.from, test.to, 1)
			if broken == document {
				t.Fatalf("the document has no %q", test.from)
			}
			if _, err := generate([]byte(broken), nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestAllFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	broken := strings.NewReplacer("tier: T0", "tier: T9", "scope: app", "scope: none").Replace(document)
	_, err := generate([]byte(broken), nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"GET /v1/apps/{app}/things", `tier "T9"`, `scope "none"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestTheTableOfASmallContract(t *testing.T) {
	t.Parallel()
	files, err := generate([]byte(document), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`const Version = "1.2.3"`, "const ContractVersion = 4", `Pattern: "^a$"`, "MaxLength: 3", "Planned: true",
	} {
		if !strings.Contains(squeeze(string(files["operations.gen.go"])), want) {
			t.Errorf("the table has no %s:\n%s", want, files["operations.gen.go"])
		}
	}
}

// squeeze undoes gofmt's alignment.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
