package results

import (
	"context"
	jsonv2 "encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net/http"

	"hangar.io/glidepath/internal/upstream"
)

// PipelineRun gives the archived run of a UID, or ErrNotFound.
func (c *Client) PipelineRun(ctx context.Context, namespace, uid string) (Record, error) {
	at, err := path(namespace, "results", uid, "records", uid)
	if err != nil || namespace == anyNamespace || uid == anyNamespace {
		return Record{}, ErrNotFound
	}
	// A run is stored under its UID, but for one that an event started, and one
	// that was made with the annotations of another.
	r, err := c.record(ctx, namespace, at)
	switch {
	case err == nil && r.UID == uid:
		return r, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return Record{}, err
	}
	return c.byUID(ctx, namespace, uid)
}

const doingRun = "reading a PipelineRun"

// record reads one record of a PipelineRun.
func (c *Client) record(ctx context.Context, namespace, at string) (r Record, err error) {
	err = c.one(ctx, ask{kindRun, doingRun}, at, func(answer *upstream.Answer) error {
		w, err := readRecord(answer.Body, c.limits)
		if err != nil {
			answer.Reject()
			return failed(doingRun, answer.StatusCode, err)
		}
		r, err = w.decode(namespace, PipelineRun)
		return err
	})
	return r, err
}

const doingLook = "asking whether an empty list is one"

// nobody is the name of a Result that there is not.
const nobody = "00000000-0000-0000-0000-000000000000"

// holds reports whether there is a Result. An error says that the database does not
// answer.
func (c *Client) holds(ctx context.Context, namespace, result string) (bool, error) {
	at, err := path(namespace, "results", result)
	if err != nil {
		return false, &Error{Doing: doingLook, Cause: err}
	}
	err = c.one(ctx, ask{kindAlive, doingLook}, at, func(*upstream.Answer) error {
		return nil // whatever it says: what follows from it is a closer look
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// one asks for one thing and gives the answer to take, or ErrNotFound when there is
// no such thing.
func (c *Client) one(ctx context.Context, a ask, at string, take func(*upstream.Answer) error) error {
	return c.again(ctx, func() error {
		answer, err := c.get(ctx, a, at, nil)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }() // what was read is judged by itself
		switch answer.StatusCode {
		case http.StatusOK:
			return take(answer)
		case http.StatusNotFound:
			return absent(a.doing, answer)
		default:
			return refused(a.doing, answer.Response)
		}
	})
}

const (
	codeNotFound = 5
	// unrouted is what a server says to a path that it does not serve.
	unrouted = "Not Found"
)

// status is the body of a refusal, which logs wrap once more.
type status struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Error   *status `json:"error"`
}

// refusal reads the body of a refusal. It is nil when a relay wrote its own.
func refusal(body io.Reader) *status {
	raw, err := io.ReadAll(io.LimitReader(body, maxErrorLine))
	if err != nil {
		return nil
	}
	var s status
	if err := jsonv2.Unmarshal(raw, &s); err != nil {
		return nil
	}
	if s.Error != nil {
		return s.Error
	}
	return &s
}

// absent gives ErrNotFound when it was Results that said 404, about what was
// asked for. A relay that leads nowhere, or a server that lacks the path, is no
// proof of anything.
func absent(doing string, answer *upstream.Answer) error {
	s := refusal(answer.Body)
	if s == nil || s.Code != codeNotFound || s.Message == unrouted {
		answer.Reject()
		return &Error{Doing: doing, Status: answer.StatusCode, Cause: final("not in Results' own words")}
	}
	return fmt.Errorf("%s: %w", doing, ErrNotFound)
}
