package api_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
)

// contractOperation has pointers where the contract leaves a key out, so that
// an absent key and an empty value are told apart.
type contractOperation struct {
	Op, Method, Path, Tier, Scope string
	Verb, Resource                *string
	Stream, Write                 *bool
}

func TestTheContractListsEveryOperation(t *testing.T) {
	t.Parallel()
	var got struct {
		APIVersion      string
		ContractVersion int
		Operations      []contractOperation
		KnownFailures   []json.RawMessage
	}
	decoder := json.NewDecoder(bytes.NewReader(api.Contract()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	var want []contractOperation
	for _, op := range api.Operations() {
		c := contractOperation{
			Op: op.ID, Method: op.Method, Path: op.Path, Tier: string(op.Tier), Scope: string(op.Scope),
			Stream: &op.Stream, Write: &op.Write,
		}
		if op.Scope != api.ScopeSelf {
			resource := op.Resource
			if op.Subresource != "" {
				resource += "/" + op.Subresource
			}
			c.Verb, c.Resource = &op.Verb, &resource
		}
		want = append(want, c)
	}
	if diff := cmp.Diff(want, got.Operations); diff != "" {
		t.Errorf("operations of the contract (-want +got):\n%s", diff)
	}
	if got.APIVersion != api.Version || got.ContractVersion != api.ContractVersion {
		t.Errorf("the contract is of API %s and version %d, the package of %s and %d",
			got.APIVersion, got.ContractVersion, api.Version, api.ContractVersion)
	}
	if got.KnownFailures == nil {
		t.Error("knownFailures is no list")
	}
}

func TestTheVersions(t *testing.T) {
	t.Parallel()
	if api.Version != "0.12.0" || api.ContractVersion != 1 {
		t.Errorf("API %s, contract %d: a new version is a decision, so it is written here too", api.Version, api.ContractVersion)
	}
}
