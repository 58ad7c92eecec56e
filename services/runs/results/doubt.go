package results

import (
	"context"
	"errors"
	"net/http"
)

// errLost says that a list lacks what is known to be there: its SQL failed, which
// Results keeps to itself.
var errLost = errors.New("what has records came empty")

// doubt looks for signs that a list that came empty is none. It reports whether the
// list is to be asked for once more.
func (l *listing) doubt(ctx context.Context) (bool, error) {
	lost, err := l.lost(ctx)
	switch {
	case err != nil || !lost:
		return false, err
	case l.doubts:
		return false, &Error{Doing: l.query.doing(), Status: http.StatusOK, Cause: errLost}
	default:
		l.doubts = true
		return true, nil
	}
}

// lost reports whether a list that came empty should not have.
//
// A Result is asked for by itself: as long as it is there it holds something, which
// a list without a filter gives. A window is compared with what was stored last,
// which takes the database less: nothing of that may be in the window.
func (l *listing) lost(ctx context.Context) (bool, error) {
	if l.query.result == anyNamespace {
		return l.windowLost(ctx)
	}
	there, err := l.client.holds(ctx, l.query.namespace, l.query.result)
	if err != nil || !there {
		return false, err
	}
	all := l.query
	all.filter, all.fields, all.believed = "", rowFields, true
	empty := true
	for _, err := range l.client.list(ctx, all) {
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, ErrBadRecord): // such as those of other types
			return false, err
		}
		empty = false
	}
	return empty, nil
}

func (l *listing) windowLost(ctx context.Context) (bool, error) {
	switch there, err := l.client.holds(ctx, l.query.namespace, nobody); {
	case err != nil:
		return false, err
	case there:
		return false, &Error{Doing: doingLook, Status: http.StatusOK, Cause: final("what cannot be there is")}
	}
	last := newest(l.query.namespace, l.query.kind)
	last.since = l.query.since
	for _, err := range l.client.list(ctx, last) {
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, ErrBadRecord): // which says nothing
			return false, err
		}
	}
	return false, nil
}

// newest is the query for the few records of a kind that were stored last, to be
// looked at and not to be given out.
func newest(namespace, kind string) query {
	return query{namespace: namespace, result: anyNamespace, kind: kind, filter: of(kind), fields: rowFields, believed: true, first: minPage}
}
