package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// byUID looks for a run in all Results of a namespace, or gives ErrNotFound.
//
// That takes the database longer than anything else, and what it gives when that is
// longer than it may is an empty list, each time. So the same list is asked for a
// run that is known to be there: without that one it is no answer.
func (c *Client) byUID(ctx context.Context, namespace, uid string) (Record, error) {
	for range c.limits.Attempts { // the other run may be deleted meanwhile
		row, err := c.lastRun(ctx, namespace, uid)
		if err == nil && row.UID != uid {
			row, err = c.among(ctx, namespace, uid, row.UID)
		}
		switch {
		case err == nil:
			return c.whole(ctx, namespace, row)
		case !errors.Is(err, errLost):
			return Record{}, err
		}
	}
	return Record{}, &Error{Doing: doingRun, Status: http.StatusOK, Cause: errLost}
}

// fewLooked is how many records are looked at for a run among them.
const fewLooked = 50

// lastRun gives one of the runs of a namespace that were stored last, that of a UID
// if it is among them, and a zero one where others alone were stored last. Where
// nothing is stored it gives ErrNotFound. No filter is there that could fail.
func (c *Client) lastRun(ctx context.Context, namespace, uid string) (last Record, err error) {
	stored := false
	for r, err := range c.list(ctx, query{namespace: namespace, result: anyNamespace, kind: PipelineRun, fields: rowFields, believed: true, first: fewLooked}) {
		switch {
		case err == nil && r.UID == uid:
			return r, nil
		case err == nil && literal.MatchString(r.UID):
			last = r
		case err != nil && !errors.Is(err, ErrBadRecord): // such as those of other types
			return Record{}, err
		}
		stored = true
	}
	if !stored {
		return Record{}, fmt.Errorf("looking for a run by its UID: %w", ErrNotFound)
	}
	return last, nil
}

// among takes a run out of a list of it and of another one, "" for none. When that
// one is missing it is errLost.
func (c *Client) among(ctx context.Context, namespace, uid, other string) (Record, error) {
	uids := []string{uid}
	if other != "" {
		uids = append(uids, other)
	}
	selected, err := oneOf("data.metadata.uid", uids...)
	if err != nil {
		return Record{}, ErrNotFound
	}
	both := query{namespace: namespace, result: anyNamespace, kind: PipelineRun, filter: all(of(PipelineRun), selected), fields: rowFields, believed: true}
	sure := other == ""
	for r, err := range c.list(ctx, both) {
		switch {
		case err != nil:
			return Record{}, err
		case r.UID == uid:
			return r, nil
		}
		sure = sure || r.UID == other
	}
	if !sure {
		return Record{}, errLost
	}
	return Record{}, ErrNotFound
}

// whole reads all of a run that a list gave a part of.
func (c *Client) whole(ctx context.Context, namespace string, row Record) (Record, error) {
	r, err := c.record(ctx, namespace, basePath+row.Name)
	if err == nil && r.UID != row.UID { // another one is stored over it
		return Record{}, ErrNotFound
	}
	return r, err
}
