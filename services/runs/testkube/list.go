package testkube

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// atOnce is how many executions of a list are read in full at the same time.
	atOnce = 4
	// minPage is Testkube's own size of a page, maxPages what a list is read of:
	// a Testkube that gives pages without end is not followed.
	minPage  = 100
	maxPages = 20
)

// page is a page of a list. Its totals cannot be relied upon.
type page struct {
	Results rows `json:"results"`
}

// whole says whether it is a page.
func (p *page) whole() bool { return p.Results.given }

// rows are those of a page. Testkube gives null for none, but never leaves the
// word out: an answer without it is not a list's.
type rows struct {
	given bool
	list  []execution
}

func (r *rows) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	r.given = true
	return json.UnmarshalDecode(d, &r.list)
}

// List gives the app's executions, newest first, at most limit of them. Each is
// read in full; one for which that fails, or takes too long, is as the list
// says. Those from before since are another app's that had the name. The app is a
// DNS label.
func (c *Client) List(ctx context.Context, app string, since time.Time, limit int) ([]Test, error) {
	found, err := c.summaries(ctx, app, since, limit)
	if err != nil {
		return nil, fmt.Errorf("listing executions: %w", err)
	}
	c.fill(ctx, app, found)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reading executions: %w", context.Cause(ctx))
	}
	tests := make([]Test, len(found))
	for i := range found {
		tests[i] = found[i].test()
	}
	return tests, nil
}

// summaries reads as many pages as it needs. Executions that begin meanwhile
// push others to the next page, so one may come twice.
func (c *Client) summaries(ctx context.Context, app string, since time.Time, limit int) ([]execution, error) {
	var found []execution
	seen := map[string]bool{}
	size := max(limit, minPage)
	for n := range maxPages {
		query := url.Values{"tagSelector": {appTag + "=" + app}, "page": {strconv.Itoa(n)}, "pageSize": {strconv.Itoa(size)}}
		p, err := readJSON[page](ctx, c, request{kindList, executionsPath, query, attempts}, maxListBytes)
		if err != nil {
			return nil, err
		}
		news := false
		for _, e := range p.Results.list {
			if e.ID == "" || seen[e.ID] || !e.of(app, e.ID) || e.ScheduledAt.Before(since) {
				continue
			}
			seen[e.ID], news = true, true
			found = append(found, e)
		}
		if len(found) >= limit || len(p.Results.list) < size || !news {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b execution) int { return b.ScheduledAt.Compare(a.ScheduledAt.Time) })
	return found[:min(len(found), limit)], nil
}

// fill reads each execution in full, in its place, as far as other lists leave it
// turns in time.
func (c *Client) fill(ctx context.Context, app string, found []execution) {
	ctx, cancel := context.WithTimeout(ctx, c.all)
	defer cancel()
	var reading errgroup.Group
	reading.SetLimit(atOnce)
	for i := range found {
		if ctx.Err() != nil {
			break
		}
		reading.Go(func() error {
			select {
			case c.details <- struct{}{}:
				defer func() { <-c.details }()
			case <-ctx.Done():
				return nil
			}
			if full, err := c.one(ctx, app, found[i].ID); err == nil {
				found[i] = *full
			}
			return nil // the list's own row stays
		})
	}
	_ = reading.Wait() // none of them fails
}

// errOther is an execution that is not the one that was asked for, or says less of
// it than its list does.
var errOther = errors.New("testkube gave another execution, or another app's, or a part of it")

// one reads an execution of the list in full. It is not tried twice: there is
// something to show in its place.
func (c *Client) one(ctx context.Context, app, id string) (*execution, error) {
	ctx, cancel := context.WithTimeout(ctx, c.detail)
	defer cancel()
	e, err := c.execution(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	if !e.of(app, id) || e.Name == "" || e.Result.Status == "" {
		return nil, errOther
	}
	return e, nil
}

// execution reads one in full.
func (c *Client) execution(ctx context.Context, id string, tries int) (*execution, error) {
	return readJSON[execution](ctx, c, request{kindExecution, executionPath(id), nil, tries}, maxDetailBytes)
}
