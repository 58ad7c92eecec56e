package kubelist

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/kube"
)

// pageSize is how many objects are asked for at once. The API server holds a
// page in memory several times over while it answers.
const pageSize = 500

// Limits bound what one client asks of the API server. All are required.
type Limits struct {
	// Bytes is how much one list may have, over all its pages.
	Bytes int64
	// Time is how long one list may take, over all its pages and the wait for
	// its turn.
	Time time.Duration
	// Concurrent is how many lists are read at once.
	Concurrent int
}

// Client reads lists. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	base   *url.URL
	limits Limits
	turns  chan struct{}
}

// NewClient gives a client that reads as the identity of cfg. Close frees what
// it holds.
func NewClient(cfg *rest.Config, limits Limits) (*Client, error) {
	if limits.Bytes <= 0 || limits.Time <= 0 || limits.Concurrent <= 0 {
		return nil, errors.New("reading lists: a limit is missing")
	}
	client, base, err := kube.HTTP(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading lists: %w", err)
	}
	return &Client{http: client, base: base, limits: limits, turns: make(chan struct{}, limits.Concurrent)}, nil
}

// Close closes the connections that no list uses.
func (c *Client) Close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// Query says which objects are listed.
type Query struct {
	Kind Kind
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels is a label selector; empty selects all.
	Labels string
	// At is a version of the cluster: the objects are listed as they were then.
	// An API server that has another version in its cache alone, or that knows
	// its cache to be wrong, reads them from where they are kept. Empty: as they
	// are now.
	At string
	// Names leaves out all of an object but its metadata.
	Names bool
}

// listed is the kind of the objects as they are sent.
func (q Query) listed() Kind {
	if q.Names {
		return Kind{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata", Resource: q.Kind.Resource}
	}
	return q.Kind
}

// List reads all objects of q as they were at one moment after the call, or at
// that of q. When the API server forgets the moment between two pages, it begins
// once more, with another. What it answers instead of a list is an
// apierrors.APIStatus.
func (c *Client) List(ctx context.Context, q Query) (*List, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return nil, fmt.Errorf("listing %s: waiting for a turn: %w", q.Kind.Resource, ctx.Err())
	}
	list, err := c.pages(ctx, q)
	if q.At == "" && expired(err) {
		list, err = c.pages(ctx, q)
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", q.Kind.Resource, err)
	}
	return list, nil
}

// expired says whether the API server has forgotten a moment.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// Version gives the resourceVersion that a list of q would have now.
func (c *Client) Version(ctx context.Context, q Query) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	list, budget := newList(), c.limits.Bytes
	if _, err := c.page(ctx, q, url.Values{"limit": {"1"}}, list, &budget); err != nil {
		return "", fmt.Errorf("asking for the version of %s: %w", q.Kind.Resource, err)
	}
	return list.version, nil
}

// pages reads every page.
func (c *Client) pages(ctx context.Context, q Query) (*List, error) {
	list, budget := newList(), c.limits.Bytes
	for next := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		switch {
		case next != "":
			query.Set("continue", next)
		case q.At != "":
			query.Set("resourceVersion", q.At)
			query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		}
		after, err := c.page(ctx, q, query, list, &budget)
		if err != nil {
			return nil, err
		}
		if after == "" {
			return list, nil
		}
		if after == next {
			return nil, errors.New("two pages name the same next one")
		}
		next = after
	}
}

// page reads one page into list and takes its bytes off the budget.
func (c *Client) page(ctx context.Context, q Query, query url.Values, list *List, budget *int64) (next string, err error) {
	resp, err := c.get(ctx, q, query)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // what was read is judged by itself
	if resp.StatusCode != http.StatusOK {
		return "", q.refused(resp, "list")
	}
	before := list.Len()
	next, err = q.listed().decodePage(&bounded{r: resp.Body, left: budget}, list)
	if err != nil {
		return "", err
	}
	return next, list.within(q.Namespace, before)
}

// get asks for the objects of q.
func (c *Client) get(ctx context.Context, q Query, query url.Values) (*http.Response, error) {
	u, err := c.url(q, query)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	accept := "application/json"
	if q.Names {
		accept += ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	}
	req.Header.Set("Accept", accept)
	// The API server is near: compressing a large list costs it more time than
	// sending it.
	req.Header.Set("Accept-Encoding", "identity")
	return c.http.Do(req)
}

// within says whether every object from the given one on is of the namespace;
// an empty one stands for all.
func (l *List) within(namespace string, from int) error {
	if namespace == "" {
		return nil
	}
	for _, it := range l.items[from:] {
		if it.Namespace != namespace {
			return fmt.Errorf("the list of namespace %s holds an object of another", namespace)
		}
	}
	return nil
}

func (c *Client) url(q Query, query url.Values) (string, error) {
	root := "apis"
	if !strings.Contains(q.Kind.APIVersion, "/") {
		root = "api"
	}
	elements := []string{root, q.Kind.APIVersion}
	if q.Namespace != "" {
		// It becomes a piece of a path.
		if faults := validation.IsDNS1123Label(q.Namespace); len(faults) > 0 {
			return "", fmt.Errorf("no namespace has the name %q", q.Namespace)
		}
		elements = append(elements, "namespaces", q.Namespace)
	}
	u := c.base.JoinPath(append(elements, q.Kind.Resource)...)
	if q.Labels != "" {
		query.Set("labelSelector", q.Labels)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}
