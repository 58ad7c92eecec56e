package kubelist

import (
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchFrom says where a watch begins and when it ends.
type WatchFrom struct {
	// ResourceVersion is what the watcher knows: what changed after it is sent.
	ResourceVersion string
	// InitialEvents has all objects sent first, as if each had just been added,
	// and then a bookmark that Event.InitialEventsEnd tells from others. They
	// are as of ResourceVersion or later; of now where it is empty.
	InitialEvents bool
	// Timeout is when the API server is to end the watch; it is rounded to
	// seconds. Required.
	Timeout time.Duration
}

// Event is one event of a watch.
type Event struct {
	// Type is any but watch.Error, which Next returns as an error.
	Type watch.EventType
	// Meta tells the object. A bookmark has a ResourceVersion alone.
	Meta
	// JSON is the object as it is to be shown; a bookmark has none. It is the
	// caller's.
	JSON []byte
	// InitialEventsEnd marks the bookmark behind the initial events.
	InitialEventsEnd bool
}

// Watch is a watch under way. Next and Close may be called concurrently.
type Watch struct {
	query   Query
	body    io.ReadCloser
	decoder *jsontext.Decoder
	// left is how many bytes the event that is being read may still have, or the
	// initial events together: they are as much as a list.
	left, most int64
	initial    bool // the initial events are under way
}

// Watch begins to watch the objects of q. The watch ends with ctx. An answer
// other than a watch is an apierrors.APIStatus.
func (c *Client) Watch(ctx context.Context, q Query, from WatchFrom) (*Watch, error) {
	query := url.Values{
		"watch":               {"true"},
		"allowWatchBookmarks": {"true"},
		"timeoutSeconds":      {strconv.Itoa(int(max(from.Timeout.Round(time.Second), time.Second) / time.Second))},
	}
	if from.ResourceVersion != "" {
		query.Set("resourceVersion", from.ResourceVersion)
	}
	if from.InitialEvents {
		query.Set("sendInitialEvents", "true")
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	resp, err := c.get(ctx, q, query)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", q.Kind.Resource, err)
	}
	if resp.StatusCode != http.StatusOK {
		defer func() { _ = resp.Body.Close() }()
		return nil, fmt.Errorf("watching %s: %w", q.Kind.Resource, q.refused(resp, "watch"))
	}
	w := &Watch{query: q, body: resp.Body, left: c.limits.Bytes, most: c.limits.Bytes, initial: from.InitialEvents}
	w.decoder = jsontext.NewDecoder(&bounded{r: resp.Body, left: &w.left})
	return w, nil
}

// Close ends the watch.
func (w *Watch) Close() { _ = w.body.Close() } // what was read is judged by itself

// Next waits for the next event. A watch that ended as it should gives io.EOF;
// one that the API server ended for a reason an apierrors.APIStatus.
func (w *Watch) Next() (Event, error) {
	if !w.initial {
		w.left = w.most
	}
	var kind string
	var raw jsontext.Value
	err := eachMember(w.decoder, func(name string, _ int) (err error) {
		switch name {
		case "type":
			return readString(w.decoder, &kind)
		case "object":
			raw, err = w.decoder.ReadValue()
			// What the decoder gave does not outlive its next read.
			raw = append(jsontext.Value(nil), raw...)
			return err
		default:
			return w.decoder.SkipValue()
		}
	})
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return Event{}, io.EOF
	}
	if err != nil {
		return Event{}, fmt.Errorf("watching %s: %w", w.query.Kind.Resource, err)
	}
	e, err := w.event(watch.EventType(kind), raw)
	if err != nil {
		return Event{}, fmt.Errorf("watching %s: an event %q: %w", w.query.Kind.Resource, kind, err)
	}
	return e, nil
}

func (w *Watch) event(kind watch.EventType, raw jsontext.Value) (Event, error) {
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted:
		m, shown, err := w.query.Kind.show(raw)
		if err != nil {
			return Event{}, err
		}
		if w.query.Namespace != "" && m.Namespace != w.query.Namespace {
			return Event{}, errors.New("an object of another namespace")
		}
		return Event{Type: kind, Meta: m, JSON: shown}, nil
	case watch.Bookmark:
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &o); err != nil {
			return Event{}, err
		}
		end := o.Annotations[metav1.InitialEventsAnnotationKey] == "true"
		w.initial = w.initial && !end
		return Event{Type: kind, Meta: Meta{ResourceVersion: o.ResourceVersion}, InitialEventsEnd: end}, nil
	case watch.Error:
		var status metav1.Status
		if err := json.Unmarshal(raw, &status); err != nil {
			return Event{}, err
		}
		return Event{}, &apierrors.StatusError{ErrStatus: status}
	default:
		return Event{}, errors.New("of an unknown type")
	}
}

// refused reads what the API server answered instead of a list or watch. It is
// for logs.
func (q Query) refused(resp *http.Response, verb string) error {
	const maxText = 4 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxText))
	if err != nil {
		text = nil // the status says enough
	}
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err == nil && status.Kind == "Status" && status.Code != 0 {
		return &apierrors.StatusError{ErrStatus: status}
	}
	gvk := schema.FromAPIVersionAndKind(q.Kind.APIVersion, q.Kind.Kind)
	return apierrors.NewGenericServerResponse(resp.StatusCode, verb,
		schema.GroupResource{Group: gvk.Group, Resource: q.Kind.Resource}, "", string(text), 0, false)
}
