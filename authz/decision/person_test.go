package decision_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"hangar.io/glidepath/api"
)

// A person's name that the contract allows is one that is taken, and no other.
func TestAPersonsNameIsWhatTheContractSays(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Parameters["OnBehalfOf"].Value.Schema.Value
	pattern := regexp.MustCompile(schema.Pattern)
	if schema.MaxLength == nil || schema.MinLength != 1 {
		t.Fatalf("the contract bounds a name by %v and %v", schema.MinLength, schema.MaxLength)
	}
	names := []string{strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 257), "a" + strings.Repeat(" ", 254) + "b", "ä", "a,b", "a, b"}
	for b := range 256 {
		c := string([]byte{byte(b)})
		names = append(names, c, "a"+c, c+"a", "a"+c+"b")
	}
	o, _ := api.Lookup("listLive")
	w := newWorld(t)
	w.grant("list", "runs", "")
	for _, name := range names {
		d := w.decide("listLive", pathOf(o, "gate-api"), bearer("tower-token", onBehalfOf, name))
		want := pattern.MatchString(name) && len(name) <= int(*schema.MaxLength)
		if d.Allowed() != want || want && d.OnBehalfOf != name {
			t.Errorf("%q is taken: %t, and the contract says %t", name, d.Allowed(), want)
		}
	}
}
