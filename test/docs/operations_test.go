package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
)

var quoted = regexp.MustCompile("`([A-Za-z]+)`")

// TestDocumentsCountTheServedOperations compares what README.md and CHANGELOG.md
// say of the operations, their numbers and the list of the served ones, with the
// contract.
func TestDocumentsCountTheServedOperations(t *testing.T) {
	t.Parallel()
	var served []string
	all := api.Operations()
	for _, op := range all {
		if !op.Planned {
			served = append(served, op.ID)
		}
	}
	slices.Sort(served)
	before := fmt.Sprintf("The contract has %d operations. %d of them are served: ", len(all), len(served))
	after := fmt.Sprintf(". The other %d are planned and have no route", len(all)-len(served))
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		text := strings.Join(strings.Fields(read(t, name)), " ")
		_, rest, found := strings.Cut(text, before)
		list, _, ended := strings.Cut(rest, after)
		if !found || !ended {
			t.Errorf("%s does not say %q, the served operations, and %q", name, before, after)
			continue
		}
		var listed []string
		for _, match := range quoted.FindAllStringSubmatch(list, -1) {
			listed = append(listed, match[1])
		}
		slices.Sort(listed)
		if !slices.Equal(listed, served) {
			t.Errorf("%s lists %v as served, the contract has %v", name, listed, served)
		}
	}
}
