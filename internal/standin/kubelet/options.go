package kubelet

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// options are those of a log request, absent where nil.
type options struct {
	follow, previous, timestamps        bool
	sinceSeconds, tailLines, limitBytes *int64
	sinceTime                           *time.Time
}

// Faults of a query, in a real kubelet's words.
var (
	errQuery   = errors.New(`{"message": "Unable to decode query."}`) // 400
	errOptions = errors.New(`{"message": "Invalid request."}`)        // 422
)

// parse reads the query as a real kubelet does: the first value of a name counts, and unknown names do not.
func parse(query url.Values) (options, error) {
	var o options
	for name, into := range map[string]*bool{"follow": &o.follow, "previous": &o.previous, "timestamps": &o.timestamps} {
		if query.Has(name) {
			// Only these are false: anything else, and nothing, is true.
			value := query.Get(name)
			*into = !strings.EqualFold(value, "false") && value != "0"
		}
	}
	if query.Has("tail") && query.Get("tail") != "" {
		query.Set("tailLines", query.Get("tail"))
		if query.Get("tail") == "all" {
			query.Del("tailLines")
		}
	}
	for name, into := range map[string]**int64{"sinceSeconds": &o.sinceSeconds, "tailLines": &o.tailLines, "limitBytes": &o.limitBytes} {
		if !query.Has(name) {
			continue
		}
		value, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil {
			return options{}, errQuery
		}
		*into = &value
	}
	if query.Get("sinceTime") != "" {
		at, err := time.Parse(time.RFC3339, query.Get("sinceTime"))
		if err != nil {
			return options{}, errQuery
		}
		o.sinceTime = &at
	}
	return o, o.validate()
}

func (o options) validate() error {
	switch {
	case o.tailLines != nil && *o.tailLines < 0,
		o.limitBytes != nil && *o.limitBytes < 1,
		o.sinceSeconds != nil && *o.sinceSeconds < 1,
		o.sinceSeconds != nil && o.sinceTime != nil:
		return errOptions
	}
	return nil
}

// since is the time before which lines are left out, zero for none.
func (o options) since(now time.Time) time.Time {
	switch {
	case o.sinceTime != nil:
		return *o.sinceTime
	case o.sinceSeconds != nil:
		return now.Add(-time.Duration(*o.sinceSeconds) * time.Second)
	default:
		return time.Time{}
	}
}
