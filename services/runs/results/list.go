package results

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hangar.io/glidepath/internal/upstream"
)

// creationUnit is how exact Kubernetes writes the time of creation.
const creationUnit = time.Second

// PipelineRuns gives the archived PipelineRuns of a namespace, "-" being all, that
// were made at since or later, paged to the end. since is at most [MaxWindow] back.
// Runs that have not finished are among them. The order is that of
// [Record.Stored], latest first, which is not that of their creation.
//
// An error that is ErrBadRecord is about one record, and the next ones follow it.
// Any other ends the iteration; what came before is then not all there is.
// Breaking off ends the reading.
func (c *Client) PipelineRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[Record, error] {
	return c.list(ctx, c.window(namespace, PipelineRun, since))
}

// PipelineRunRows is PipelineRuns with values that hold what a row of a list
// shows: name, labels and annotations, reference and parameters, times and
// conditions. That is a twentieth of most runs. What a run lacks may be null, and
// a server that cannot leave things out sends whole runs.
func (c *Client) PipelineRunRows(ctx context.Context, namespace string, since time.Time) iter.Seq2[Record, error] {
	q := c.window(namespace, PipelineRun, since)
	q.fields = rowFields
	return c.list(ctx, q)
}

// TaskRuns gives the archived TaskRuns as PipelineRuns does. A TaskRun is never
// older than its run.
func (c *Client) TaskRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[Record, error] {
	return c.list(ctx, c.window(namespace, TaskRun, since))
}

// TaskRunsOf gives all TaskRuns of a Result ([Record.Result]), last stored first.
// Runs that one event started may share a Result, so a TaskRun's own labels say
// whose it is.
func (c *Client) TaskRunsOf(ctx context.Context, namespace, result string) iter.Seq2[Record, error] {
	if result == anyNamespace {
		return fails(&Error{Doing: "listing TaskRuns", Cause: final("of no Result in particular")})
	}
	return c.list(ctx, query{namespace: namespace, result: result, kind: TaskRun, filter: of(TaskRun)})
}

// window is the query for what was made at a time or later.
func (c *Client) window(namespace, kind string, from time.Time) query {
	if oldest := c.now().Add(-MaxWindow); from.Before(oldest) {
		from = oldest
	}
	from = from.Truncate(creationUnit)
	return query{namespace: namespace, result: anyNamespace, kind: kind, filter: all(of(kind), since(from)), since: from}
}

// query is one list of records.
type query struct {
	namespace, result, kind string
	filter                  filter
	since                   time.Time
	fields                  string // empty for all
	// believed says that an empty answer needs no second look.
	believed bool
	// first is how many of the records that were stored last are enough; 0 for all.
	first int
}

func (q query) ask() ask {
	if q.kind == TaskRun {
		return ask{kindTasks, "listing TaskRuns"}
	}
	return ask{kindRuns, "listing PipelineRuns"}
}

func (q query) doing() string { return q.ask().doing }

func fails(err error) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) { yield(Record{}, err) }
}

// list reads a list to its end.
func (c *Client) list(ctx context.Context, q query) iter.Seq2[Record, error] {
	at, err := path(q.namespace, "results", q.result, "records")
	if err != nil {
		return fails(&Error{Doing: q.doing(), Cause: final(err.Error())})
	}
	return func(yield func(Record, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
		defer cancel()
		size := c.limits.PageRecords
		if q.first > 0 {
			size = q.first
		}
		l := &listing{
			client: c, query: q, path: at, size: newPageSize(size), yield: yield,
			seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}, tokens: map[string]struct{}{},
		}
		if err := l.pages(ctx); err != nil && !errors.Is(err, errStop) {
			yield(Record{}, err)
		}
	}
}

// errStop says that whoever reads the list wants no more.
var errStop = errors.New("no more is wanted")

// listing is a list under way.
type listing struct {
	client *Client
	query  query
	path   string
	size   pageSize
	yield  func(Record, error) bool

	seed   maphash.Seed
	seen   map[uint64]struct{} // hashes of the names of records
	tokens map[string]struct{}
	back   bool // a page was asked for again, since the one behind it came empty
	doubts bool // the list was asked for again, since it came empty and should not have
}

// pages reads every page.
func (l *listing) pages(ctx context.Context) error {
	for before, token := "", ""; ; {
		p, err := l.next(ctx, token)
		if errors.Is(err, errEmptied) && !l.back {
			token, l.back = before, true
			p, err = l.lookBack(ctx, token, err)
		}
		switch {
		case err != nil:
			return err
		case p.next == "" && len(l.seen) == 0 && !l.query.believed:
			if once, err := l.doubt(ctx); !once {
				return err
			}
			continue
		case p.next == "" || l.query.first > 0:
			return nil
		}
		if l.followed(p.next) {
			return &Error{Doing: l.query.doing(), Cause: final("a page names one before it as the next")}
		}
		l.tokens[p.next] = struct{}{}
		before, token = token, p.next
	}
}

// next reads one page, in as many attempts as there are.
func (l *listing) next(ctx context.Context, token string) (p *page, err error) {
	err = l.client.again(ctx, func() (err error) {
		p, err = l.page(ctx, token)
		return err
	})
	return p, err
}

// lookBack reads the page before one that came empty once more. Where what that had
// was deleted meanwhile, this one names no next page any more, or another. As long
// as it names the same, empty is the word of a database that failed.
func (l *listing) lookBack(ctx context.Context, token string, empty error) (*page, error) {
	switch p, err := l.next(ctx, token); {
	case err != nil:
		return nil, err
	case p.records == 0 || l.followed(p.next):
		return nil, empty
	default:
		return p, nil
	}
}

func (l *listing) followed(token string) bool {
	_, ok := l.tokens[token]
	return ok
}

// errEmptied says that a page that was named as the next one has nothing.
var errEmptied = errors.New("a page that has records came empty")

// page reads one page. Records that were given out before are not given again.
func (l *listing) page(ctx context.Context, token string) (*page, error) {
	answer, err := l.get(ctx, token)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // what was read is judged by itself
	p, err := readPage(answer.Body, l.client.limits, l.take)
	switch {
	case errors.Is(err, errStop):
		return nil, err
	case err != nil:
		answer.Reject()
		return nil, failed(l.query.doing(), answer.StatusCode, err)
	case p.records == 0 && token != "":
		answer.Reject()
		return nil, failed(l.query.doing(), answer.StatusCode, errEmptied)
	}
	l.size.passed()
	return p, nil
}

// get asks for one page, of fewer records when as many are too large to send.
func (l *listing) get(ctx context.Context, token string) (*upstream.Answer, error) {
	for {
		values := url.Values{"order_by": {"create_time desc"}, "page_size": {strconv.Itoa(l.size.now)}}
		if l.query.filter != "" {
			values.Set("filter", string(l.query.filter))
		}
		if token != "" {
			values.Set("page_token", token)
		}
		if l.query.fields != "" {
			values.Set("fields", l.query.fields)
		}
		answer, err := l.client.get(ctx, l.query.ask(), l.path, values)
		switch {
		case err != nil:
			return nil, err
		case answer.StatusCode == http.StatusOK:
			return answer, nil
		}
		why := refused(l.query.doing(), answer.Response)
		_ = answer.Body.Close() // what else it says is of no interest
		// With a time to wait, it is somebody on the way who has had enough.
		if why.Status != http.StatusTooManyRequests || why.limited || !l.size.shrink() {
			return nil, why
		}
	}
}

// take takes one record of a page.
func (l *listing) take(w wireRecord) error {
	key := maphash.String(l.seed, w.name)
	if _, ok := l.seen[key]; ok {
		return nil
	}
	if len(l.seen) >= l.client.limits.Records {
		return final(fmt.Sprintf("more than %d records", l.client.limits.Records))
	}
	l.seen[key] = struct{}{}
	r, err := w.decode(l.query.namespace, l.query.kind)
	if err == nil && r.Created.Before(l.query.since) {
		return nil // the filter is Results' to apply, and ours to hold it to
	}
	if !l.yield(r, err) {
		return errStop
	}
	return nil
}
