package explain

import (
	"fmt"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/denylist"
)

// denyList is the deny-list as its file is now, with what the decision found
// there.
type denyList struct {
	file  string
	list  *denylist.List
	found *DenyList // nil until it is asked
}

var _ decision.DenyList = (*denyList)(nil)

// readDenyList reads authz's list. Where authz would not start, nothing can be
// explained.
func readDenyList(file string) (*denyList, error) {
	if file == "" {
		return &denyList{list: new(denylist.List)}, nil
	}
	list, err := denylist.Read(file)
	if err != nil {
		return nil, fmt.Errorf("reading the deny-list: %w", err)
	}
	return &denyList{file: file, list: list}, nil
}

// Check is what authz asks of its list.
func (d *denyList) Check(c *authn.Caller, onBehalfOf string) error {
	d.found = &DenyList{File: d.file, Entries: d.list.Len()}
	e, denied := d.list.Denies(c, onBehalfOf, time.Now())
	if !denied {
		return nil
	}
	d.found.Denied = &Denied{Kind: string(e.Kind), Name: e.Name, Reason: e.Reason}
	if !e.Until.IsZero() {
		d.found.Denied.Until = e.Until.UTC().Format(time.RFC3339)
	}
	return e.Refusal(onBehalfOf)
}
