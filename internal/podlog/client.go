package podlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/kube"
)

// maxObject bounds a TaskRun or Pod: etcd takes no larger ones.
const maxObject = 8 << 20

// maxFault bounds what is read of an answer that is an error.
const maxFault = 16 << 10

// Times bound a read. All are required.
type Times struct {
	// Answer is how long the API server may take to begin an answer.
	Answer time.Duration
	// Stall is how long nothing may come of a log that is not followed.
	Stall time.Duration
	// Settle is how long the cluster may take to say that a container has
	// ended, once its log has.
	Settle time.Duration
}

// Client reads logs. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  *url.URL
	times Times
}

// NewClient gives a client that reads as the identity of cfg. Close frees what
// it holds.
//
// It speaks HTTP/1.1, where a log that nobody takes waits in the API server:
// HTTP/2 would hold megabytes of each here.
func NewClient(cfg *rest.Config, times Times) (*Client, error) {
	if times.Answer <= 0 || times.Stall <= 0 || times.Settle <= 0 {
		return nil, errors.New("reading logs: a time is missing")
	}
	cfg = rest.CopyConfig(cfg)
	cfg.NextProtos = []string{"http/1.1"}
	cfg.DisableCompression = true
	client, base, err := kube.HTTP(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading logs: %w", err)
	}
	return &Client{http: client, base: base, times: times}, nil
}

// Close closes the connections that no log uses.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// statusError is an answer of the API server that is none of what was asked.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answered %d: %s", e.code, e.message)
}

// answered says whether err is an answer with this status.
func answered(err error, code int) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.code == code
}

// get reads one object. Each element of path is one segment of its path.
func (c *Client) get(ctx context.Context, into any, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, c.times.Answer)
	defer cancel()
	body, err := c.open(ctx, nil, path...)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(body, maxObject))
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

// open begins an answer that is a 200, by a path as that of get. The caller
// closes it, and bounds it by ctx.
func (c *Client) open(ctx context.Context, query url.Values, path ...string) (io.ReadCloser, error) {
	// JoinPath reads slashes and dots: a name that has them would lead to another object, with rights that the caller lacks.
	if i := slices.IndexFunc(path, misleads); i >= 0 {
		return nil, fmt.Errorf("building the request: %.80q is no segment of a path", path[i])
	}
	u := c.base.JoinPath(path...)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}
	req.Header.Set("Accept", "application/json, */*")
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, fault(resp)
}

// misleads says whether a name, as a segment of a path, would be another path.
func misleads(segment string) bool {
	return segment == "" || segment == "." || segment == ".." || strings.ContainsAny(segment, "/%\\")
}

// fault reads what an answer that is an error says.
func fault(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxFault))
	if err != nil {
		return fmt.Errorf("reading the answer %d: %w", resp.StatusCode, err)
	}
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil || status.Message == "" {
		status.Message = string(raw)
	}
	return &statusError{code: resp.StatusCode, message: status.Message}
}
